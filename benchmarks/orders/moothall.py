"""The order as a machine of Moothall: payments are at most once, deliveries idempotent, with the key of the runtime."""

import os
from dataclasses import dataclass, replace

from moothall import All, Answered, Final, Machine, Moothall, On, Returned, State, call, question, tool
from orders import world


@dataclass(frozen=True)
class Order:
    """An order, and what it has appended to its history."""

    folder: str
    history: tuple[str, ...] = ()


def note(order, returned):
    return replace(order, history=(*order.history, returned.value))


def note_answer(order, answered):
    return replace(order, history=(*order.history, "ask"))


def tool_of(step):
    """The tool of a step, which returns what is appended to the history."""
    deed, _, what = step.partition(" ")

    async def work(folder, key):
        if deed == "pay":
            world.pay(folder, what)
        elif deed in ("deliver", "check"):
            world.deliver(folder, what, key)
        else:
            world.think()
        return step

    work.__name__ = step.replace(" ", "_")
    return tool(work, repeats="at-most-once" if deed == "pay" else "idempotent")


def state_of(step):
    if step == "ask":
        return State(step, enter=question("Go on?"))
    if step == "check":
        return State(step, enter=[call(tool_of(f"check {what}"), "folder") for what in world.CHECKS])
    return State(step, enter=call(tool_of(step), "folder"))


def rows_of(step, then):
    if step == "ask":
        return [On(step, Answered, to=then, do=note_answer)]
    if step == "check":
        return [On(step, Returned, do=note, at_most=len(world.CHECKS)), On(step, All(Returned), to=then)]
    return [On(step, Returned, to=then, do=note)]


ORDER = Machine(
    "order",
    data=Order,
    states=[*(state_of(step) for step in world.STEPS), Final("over")],
    moves=[
        row for step, then in zip(world.STEPS, (*world.STEPS[1:], "over"), strict=True) for row in rows_of(step, then)
    ],
)


async def work(folder, begun, asked):
    """Begin the order or go on with it, to its end; its history. `asked` is called where a person had to look."""
    os.environ["MOOTHALL_HOME"] = folder
    async with Moothall(f"sqlite:{folder}/moothall.db", listeners=()) as hall:
        begun()
        if await is_known(hall):
            outcome = await hall.resume("order", ORDER)
        else:
            outcome = await hall.run(ORDER, Order(folder), run_id="order")
        while outcome.questions:
            first, said = outcome.questions[0], True
            if first.prompt != "Go on?":
                asked()
                said = look(folder, outcome.states[0])
            outcome = await hall.answer("order", said, question=first.id, machine=ORDER)
    return outcome.data.history if outcome.status == "done" else ()


async def is_known(hall):
    return any(stored.record.run == "order" for stored in await hall.store.runs())


def look(folder, step):
    """What a person finds out about a payment whose outcome is unknown."""
    if world.was_paid(folder, step.split()[1]):
        return {"outcome": "done", "value": step}
    return {"outcome": "again"}
