"""The order as an application of Apache Burr, with AsyncSQLitePersister; keys are made of order and step."""

import asyncio
from itertools import pairwise

from burr.core import ApplicationBuilder, State, action
from burr.integrations.persisters.b_aiosqlite import AsyncSQLitePersister

from orders import world


def action_of(step):
    deed, _, what = step.partition(" ")

    @action(reads=["folder", "history"], writes=["history"])
    async def work(state: State) -> State:
        if deed == "pay":
            world.pay(state["folder"], what)
        elif deed == "deliver":
            world.deliver(state["folder"], what, f"order-{what}")
        else:
            world.think()
        return state.append(history=step)

    return work


@action(reads=["history"], writes=["history"])
async def ask(state: State, answer: str) -> State:
    return state.append(history="ask")


@action(reads=["folder", "history"], writes=["history"])
async def check(state: State) -> State:
    async def one(what):
        world.deliver(state["folder"], what, f"order-{what}")
        return f"check {what}"

    said = await asyncio.gather(*(one(what) for what in world.CHECKS))
    return state.update(history=[*state["history"], *said])


def name(step):
    return step.replace(" ", "_")


async def work(folder, begun, asked):
    """Begin the order or go on with it, to its end; its history."""
    store = await AsyncSQLitePersister.from_values(db_path=f"{folder}/burr.db", table_name="orders")
    await store.initialize()
    own = {"ask": ask, "check": check}
    names = [name(step) for step in world.STEPS]
    app = await (
        ApplicationBuilder()
        .with_actions(**{name(step): own.get(step) or action_of(step) for step in world.STEPS})
        .with_transitions(*pairwise(names))
        .with_identifiers(app_id="order", partition_key="orders")
        .initialize_from(
            store,
            resume_at_next_action=True,
            default_state={"folder": folder, "history": []},
            default_entrypoint=names[0],
        )
        .with_state_persister(store)
        .abuild()
    )
    begun()
    while (step := app.get_next_action()) is not None:
        inputs = {"answer": "yes"} if step.name == "ask" else {}
        await app.arun(halt_before=["ask"] if step.name != "ask" else [], halt_after=["ask", names[-1]], inputs=inputs)
    history = app.state["history"]
    await store.cleanup()
    return history
