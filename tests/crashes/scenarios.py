"""The scenarios of the crash matrix: one row each; a new one is a machine, a story and a line in the table."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from moothall.agents.ask import AskAgent, FormField, Replied, Returned, Tool, ToolCall, ask, call, form, tool
from moothall.agents.ports import Reply
from moothall.app.kinds.bindings import Provided, bind
from moothall.app.kinds.source import child_machine
from moothall.errors import Broken, Refused
from moothall.kernel.effects import Alarm, AskPerson, CancelSend, Effect, Send, StartChild
from moothall.kernel.events import Answered, Cancelled, ChildDone, Event, Exhausted, Interrupted, Named
from moothall.kernel.machine import Budget, Machine
from moothall.kernel.nodes import All, Final, On, State, anywhere, emitting
from moothall.kernel.step import Move
from moothall.runtime.adopt import Insistence
from moothall.runtime.children import child_id
from moothall.runtime.drive import CRASHES, drive
from moothall.runtime.fork import fork, origin_of
from moothall.runtime.hall import Bindings, ChildSpec, answer, cancel, questions, tell
from moothall.runtime.journal import Record
from moothall.runtime.ports import SET_ASIDE, Context, Performer
from moothall.runtime.retry import Retry, retry
from tests.crashes.mortal import CHANGE, OTHER, Life, Scenario, desk_here, ends, unmarked, unretried
from tests.runtime.rated import ANN, RATED, RATED_TWICE, RATINGS, Game
from tests.runtime.world import PROCESSES, RUN, Basket, Fetch, Fetched, fan, keep, line
from tests.simulation.machines import Hurry

SLOW = 6.0
"""Of the loop's time: a lease is renewed while this takes, and a trial ends."""
LOST = 1000.0


@dataclass(frozen=True, slots=True)
class Article:
    """What the agents write."""

    topic: str = "tides"
    draft: str = ""
    notes: str = "none"


async def writer(prompt: str) -> str:
    """An agent that answers the same prompt with the same text."""
    return f"a draft on [{prompt}]"


async def critic(prompt: str) -> str:
    """An agent that is content with a draft that heeds its notes."""
    return "good" if "how often" in prompt else "say how often"


async def lookup(topic: str) -> dict[str, Any]:
    """A tool."""
    return {"topic": topic, "pages": [3, 5, 8]}


async def enter(topic: str, key: str) -> str:
    """A tool whose calls must not be repeated blindly."""
    entered: str = desk_here.get().enter(key, f"{topic} entered")
    return entered


async def entered(topic: str, key: str) -> str | None:
    """What a call of `enter` returned, if it was made."""
    made = desk_here.get().register.get(key)
    return made[0] if made else None


async def planner(prompt: str) -> str | Reply:
    """An agent that looks something up before it replies."""
    if '"role": "tool"' in prompt:
        return "a plan"
    return Reply("let me look", calls=(ToolCall("lookup", {"topic": "tides"}), ToolCall("enter", {"topic": "tides"})))


async def fetch(effect: Any, context: Context) -> Event:
    """Brings what is wanted: at once, a little later, slowly, or not before the second attempt."""
    if effect.what.startswith("shaky") and context.attempt == 1:
        await asyncio.sleep(LOST if isinstance(effect, Hurry) else 0)
        raise OSError("spilt")
    if effect.what.startswith("later"):
        await asyncio.sleep(int(effect.what[-1]) / 10)
    if effect.what.startswith("spoken") and (hear := context.ear("cook")) is not None:
        hear(f"The sea rises twice a day, says {effect.what}.")
        await asyncio.sleep(LOST)
    await asyncio.sleep(SLOW if effect.what.startswith("slow") else 0)
    return Fetched(effect.what)


HANDS = Bindings({Fetch.kind: Performer(Fetch, fetch), Hurry.kind: Performer(Hurry, fetch)})
CHILD = line("bread", "milk")
WITH_CHILD = Bindings(HANDS.performers, child=lambda name: ChildSpec(CHILD, "", False, lambda given: Basket(), HANDS))

WRITING = Machine(
    "writing",
    data=Article,
    states=[
        State("drafting", enter=ask(writer, "Write about {topic}. Notes: {notes}")),
        State("reviewing", enter=ask(critic, "Judge this draft: {draft}")),
        Final("finished"),
    ],
    moves=[
        On("drafting", Replied, to="reviewing", do=lambda article, reply: replace(article, draft=reply.text)),
        On("reviewing", Replied, to="finished", when=lambda article, reply: reply.text == "good"),
        On(
            "reviewing",
            Replied,
            to="drafting",
            do=lambda article, reply: replace(article, notes=reply.text),
            at_most=2,
        ),
    ],
)


def calling(one: Tool) -> Machine:
    """A machine that calls a tool, and then another."""
    return Machine(
        f"calling {one.name}, {one.repeats}",
        data=Article,
        states=[
            State("calling", enter=call(one, "topic")),
            State("looking", enter=call(lookup, "topic")),
            Final("found"),
        ],
        moves=[
            On("calling", Returned, to="looking", do=lambda article, event: replace(article, draft=str(event.value))),
            On("looking", Returned, to="found", do=lambda article, event: replace(article, notes=str(event.value))),
        ],
    )


PURE = calling(tool(lookup, repeats="pure"))
IDEMPOTENT = calling(tool(lookup, repeats="idempotent"))
CHECKED = calling(tool(enter, repeats="check-first", check=entered))
ONCE = calling(tool(enter, repeats="at-most-once"))
APPROVING = Machine(
    "approving",
    data=Basket,
    states=[
        State("fetching", enter=Fetch("bread")),
        State("asking", enter=AskPerson("Well?")),
        State("adding", enter=Fetch("milk")),
        Final("home"),
    ],
    moves=[
        On("fetching", Fetched, to="asking", do=keep),
        On("asking", "answered", to="adding"),
        On("adding", Fetched, to="home", do=keep),
    ],
)
RINGING = Machine(
    "ringing",
    data=Basket,
    states=[
        State("dozing", enter=Alarm(Named("rung"), 40)),
        State(
            "hurrying",
            enter=[Fetch("bread"), Send(Named("tired"), 90, id="tired"), Send(Named("told"), 20)],
            exit=CancelSend("tired"),
        ),
        Final("home"),
    ],
    moves=[
        On("dozing", "rung", to="hurrying"),
        On("hurrying", Fetched, do=keep),
        On("hurrying", ["told", "tired"], to="home"),
    ],
)
PLANNING = Machine(
    "planning",
    data=Article,
    states=[
        State(
            "planning",
            enter=ask(planner, "Plan {topic}", tools=[lookup, tool(enter, repeats="check-first", check=entered)]),
        ),
        Final("planned"),
    ],
    moves=[On("planning", Replied, to="planned", do=lambda article, reply: replace(article, draft=reply.text))],
)
DELEGATING = Machine(
    "delegating",
    data=Basket,
    states=[
        State("delegating", enter=StartChild(CHILD.name)),
        State("fetching", enter=Fetch("salt")),
        Final("home"),
    ],
    moves=[On("delegating", ChildDone.name, to="fetching"), On("fetching", Fetched, to="home", do=keep)],
)
SHAKING = Machine(
    "shaking",
    data=Basket,
    states=[State("one", enter=[Fetch("shaky a"), Hurry("shaky b")]), State("two", enter=Fetch("c")), Final("home")],
    moves=[
        On("one", Fetched, to="two", do=keep, when=lambda basket, _: len(basket.got) == 1),
        On("one", Fetched, do=keep),
        On("two", Fetched, to="home", do=keep),
    ],
)
CLEARING = Machine(
    "clearing",
    data=Basket,
    states=[
        State("fetching", enter=[Fetch("slow bread"), Fetch("slow milk")]),
        State("clearing", enter=Fetch("broom")),
        Final("away"),
    ],
    moves=[
        On("fetching", Fetched, do=keep),
        On("clearing", Fetched, to="away", do=keep),
        On(anywhere, Cancelled, to="clearing"),
    ],
)
SPENDING = Machine(
    "spending",
    data=Basket,
    budget=Budget(calls=3),
    states=[State("one", enter=[Fetch("a"), Fetch("b")]), State("two", enter=[Fetch("c"), Fetch("d")]), Final("poor")],
    moves=[
        On("one", Fetched, to="two", do=keep, when=lambda basket, _: len(basket.got) == 1),
        On("one", Fetched, do=keep),
        On("two", Fetched, do=keep),
        On("two", Exhausted, to="poor"),
    ],
)


POOR = Machine(
    "poor",
    data=Basket,
    budget=Budget(calls=2),
    states=[
        State("one", enter=Fetch("a")),
        State("two", enter=[Fetch("b"), Fetch("later 3")]),
        State("three", enter=Fetch("c")),
        Final("home"),
    ],
    moves=[
        On("one", Fetched, to="two", do=keep),
        On("two", Fetched, to="three", do=keep, when=lambda basket, _: len(basket.got) == 2),
        On("two", Fetched, do=keep),
        On("three", Fetched, to="home", do=keep),
    ],
)
TWO_RUNS = line("a", "b", "c")


def speaking(*what: str) -> Machine:
    """A machine whose agents speak until somebody has heard enough."""
    return Machine(
        "speaking",
        data=Basket,
        states=[
            State("speaking", enter=[Fetch(one) for one in what]),
            State("changing", enter=Fetch("broth")),
            Final("home"),
        ],
        moves=[
            On("speaking", Fetched, do=keep),
            On("speaking", "redirected", to="changing"),
            On("changing", Fetched, to="home", do=keep),
        ],
    )


def slip(basket: Basket, event: Fetched) -> Basket:
    raise ZeroDivisionError("a bug")


def fetching(do: Any) -> Machine:
    """A machine that fetches two things beside each other, and one more."""
    return Machine(
        "mended",
        data=Basket,
        states=[State("one", enter=[Fetch("a"), Fetch("later 2")]), State("two", enter=Fetch("b")), Final("home")],
        moves=[
            On("one", Fetched, to="two", do=do, when=lambda basket, _: len(basket.got) == 1),
            On("one", Fetched, do=keep),
            On("two", Fetched, to="home", do=keep),
        ],
    )


def wording(prompt: str, question: str, *, first: str = "asking") -> Machine:
    """A machine that has an agent write something and asks a person; `first` is where its draft goes."""
    return Machine(
        "worded",
        data=Article,
        states=[
            State("drafting", enter=ask(writer, prompt)),
            State("asking", enter=AskPerson(question)),
            State("reviewing", enter=ask(critic, "Judge {draft}, how often")),
            Final("finished"),
        ],
        moves=[
            On("drafting", Replied, to=first, do=lambda article, reply: replace(article, draft=reply.text)),
            On("asking", Answered, to="reviewing", do=lambda article, said: replace(article, notes=said.value)),
            On("reviewing", Replied, to="finished", do=lambda article, reply: replace(article, draft=reply.text)),
        ],
    )


WORDED, REWORDED = wording("Write about {topic}", "Well?"), wording("Describe {topic}", "Is it well?")
REDIRECTED = wording("Write about {topic}", "Well?", first="reviewing")


@dataclass(frozen=True, slots=True)
class Panel:
    """What the members of a panel said, by the ids of their asks, and what a person wants."""

    said: Mapping[str, str] = field(default_factory=dict)
    wanted: Mapping[str, Any] = field(default_factory=dict)


@emitting(AskAgent, most=3)
def ask_members(panel: Panel, _: object) -> Move[Panel]:
    asks = [AskAgent("member", f"What about {topic}?", id=topic) for topic in ("tides", "winds", "moons")]
    return Move(panel, effects=tuple(asks))


def hear_member(panel: Panel, reply: Replied) -> Panel:
    return replace(panel, said={**panel.said, reply.id: reply.text})


@emitting(AskPerson)
def clarify(panel: Panel, _: object) -> AskPerson:
    size = FormField("size", "How many?", schema={"type": "integer", "minimum": 1})
    return form("Before we go on", [FormField("place", f"Where? {len(panel.said)} have spoken"), size], id="first")


PANEL = Machine(
    "panel",
    data=Panel,
    states=[State("proposing", enter=ask_members), State("clarifying", enter=clarify), Final("settled")],
    moves=[
        On("proposing", Replied, do=hear_member, at_most=3),
        On("proposing", All(Replied), to="clarifying"),
        On("clarifying", Answered, to="settled", do=lambda panel, said: replace(panel, wanted=said.value)),
    ],
)


class Sound(Effect):
    """Sound a depth: an effect of an author's own."""

    kind = "sound"
    outcomes = (Fetched,)
    place: str


class Moor(Sound):
    """Moor, at most once."""

    kind = "moor"
    repeats = "at-most-once"


async def sound(effect: Sound, context: Context) -> Fetched:
    """What performs both, and keeps a register of them."""
    if effect.repeats == "at-most-once":
        desk_here.get().enter(context.key, effect.place)
    return Fetched(effect.place)


def sailing(*effects: Effect) -> Machine:
    """A machine with effects of its own, one after the other."""
    names = [f"s{number}" for number in range(len(effects))]
    return Machine(
        "sailing",
        data=Basket,
        states=[*(State(name, enter=one) for name, one in zip(names, effects, strict=True)), Final("home")],
        moves=[On(here, Fetched, to=there, do=keep) for here, there in zip(names, [*names[1:], "home"], strict=True)],
    )


SOUNDING, MOORING = sailing(Sound("bay"), Sound("cape")), sailing(Sound("bay"), Moor("quay"), Sound("cape"))
WONDERING = Machine(
    "wondering",
    data=Basket,
    states=[State("asking", enter=AskPerson("Well?")), State("fetching", enter=Fetch("milk")), Final("home")],
    moves=[On("asking", Answered, to="fetching"), On("fetching", Fetched, to="home", do=keep)],
)
FORKING = Machine(
    "forking",
    data=Basket,
    states=[State("delegating", enter=[StartChild(WONDERING.name), Moor("quay")]), Final("home")],
    moves=[On("delegating", Fetched, do=keep), On("delegating", ChildDone.name, to="home")],
)
OWN = {Sound.kind: Performer(Sound, sound), Moor.kind: Performer(Moor, sound)}
WITH_WONDERING = Bindings(
    {**HANDS.performers, **OWN}, child=lambda name: ChildSpec(WONDERING, "", False, lambda given: Basket(), HANDS)
)


async def plain(life: Life) -> None:
    """Begin, and drive to the end."""
    await life.opened()
    await life.driven()


async def answered(life: Life) -> None:
    """Drive to the question, answer it, and drive to the end."""
    await life.opened()
    await life.driven()
    await answer(life.hall, RUN, "well", "1.0")
    await life.driven()


async def cancelled(life: Life) -> None:
    """Cancel what is under way, and let it clear up."""
    await life.opened()
    driving = asyncio.create_task(life.driven())
    await asyncio.sleep(SLOW / 2)
    await life.opened()
    await cancel(life.hall, RUN, "enough", "stop-1")
    await driving


async def stopped(life: Life) -> None:
    """Stop a worker while it is at work, as Ctrl-C does, and go on."""
    await life.opened()
    if life.stage.once("stop"):
        driving = asyncio.create_task(drive(life.hall, RUN))
        await asyncio.sleep(SLOW / 2)
        driving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await driving
        await life.opened()
    await life.driven()


async def retried(life: Life) -> None:
    """Drive a run to the end of its budget, and let it go on with a larger one."""
    await life.opened()
    await life.driven()
    while life.hall.runs[RUN].head.snapshot.status == "limited":
        await retry(life.hall, RUN, POOR, Retry("Ada", {"calls": 9.0}))
        await life.driven()


async def together(life: Life) -> None:
    """Drive two runs at once: their commits share transactions."""
    await life.opened()
    await life.opened(OTHER)
    await life.driven(RUN, OTHER)


async def rated(life: Life) -> None:
    """Write a record three times, once in vain, and tell a mirror: no update is lost or doubled."""
    await life.opened()
    await life.driven()
    (rating,) = await life.kept.records(RATINGS, key=ANN)
    assert rating.version == rating.value["games"] == 2, f"an update is lost or doubled: {rating}"
    sent = await life.hall.store.outbox("mirror")
    assert [one.record.version for one in sent] in ([1, 2], [])
    await life.hall.store.mirrored("mirror", 2)
    assert await life.hall.store.outbox("mirror") == []


async def raced(life: Life) -> None:
    """Two runs read one record and write it over what they read: whoever comes second reads again."""
    await life.opened()
    await life.opened(OTHER)
    await life.driven(RUN, OTHER)
    (rating,) = await life.kept.records(RATINGS, key=ANN)
    assert rating.version == rating.value["games"] == 2, f"an update is lost or doubled: {rating}"
    versions = {life.hall.runs[run].head.snapshot.data.version for run in (RUN, OTHER)}
    assert versions == {1, 2}, f"two runs think that they wrote the same version: {versions}"


async def interrupted(life: Life) -> None:
    """Tell a run to do something else while its agents speak."""
    heard: list[str] = []
    life.hall.ear = lambda run, who: heard.append
    await life.opened()
    driving = asyncio.create_task(life.driven())
    await asyncio.sleep(SLOW / 2)
    await life.opened()
    await tell(life.hall, RUN, Named("redirected"), "person-1")
    await driving
    names = [entry["event"]["name"] for entry in await life.kept.entries(RUN)]
    if not life.stage.deaths:
        [asking, *_] = life.stage.scenario.machine.states
        assert isinstance(asking, State)
        assert isinstance(asking.enter, Sequence)
        wanted = len(asking.enter)
        assert names.count(Interrupted.name) == wanted, names


async def mended(life: Life) -> None:
    """Drive a run into a bug, mend it, and let the run go on from the replies that it has."""
    if CHANGE not in life.stage.done_once:
        await life.opened()
        await life.driven()
        life.stage.once(CHANGE)
    if (await life.kept.load(RUN)).status == "failed":
        life.staff(RUN)
        await retry(life.hall, RUN, life.stage.machine(RUN), Retry("Ada"))
    else:
        await life.opened()
    await life.driven()


async def taken_up(life: Life) -> None:
    """Retry a run that was set aside because it lost too many holders."""
    await life.opened()
    if life.stage.once("loss"):
        await _lose(life, CRASHES)
    while True:
        with contextlib.suppress(Broken):
            await life.driven()
        if not (await life.kept.load(RUN)).status.startswith(SET_ASIDE):
            return
        await life.opened()
        await retry(life.hall, RUN, life.stage.scenario.machine, Retry("Ada"))


async def adopted(life: Life) -> None:
    """Drive to a question, change the machine, and go on under the new one."""
    await life.opened()
    await life.driven()
    life.stage.once(CHANGE)
    await life.opened()
    await answer(life.hall, RUN, "well", "1.0")
    await life.driven()


async def filled_in(life: Life) -> None:
    """Drive to a form, fill it in, and drive to the end."""
    await life.opened()
    await life.driven()
    for question in questions(life.hall.runs[RUN].head):
        await answer(life.hall, RUN, {"place": "the bay", "size": 3}, question.key)
    await life.driven()
    assert life.hall.runs[RUN].head.snapshot.data.wanted == {"place": "the bay", "size": 3}


async def forked(life: Life) -> None:
    """Fork a run whose child has begun, let the fork do all of that again, and answer both children."""
    await life.opened()
    await life.driven()
    await _find_out(life, RUN)
    try:
        await life.kept.load(OTHER)
    except Refused:
        origin = await origin_of(life.hall, RUN, 0, FORKING)
        record = Record(OTHER, FORKING.name, FORKING.digest, life.hall.clock.now(), origin=RUN)
        life.staff(OTHER)
        await fork(life.hall, origin, record, repeats=True)
    await life.opened(OTHER)
    await life.driven(OTHER)
    await _find_out(life, OTHER)
    for run in (RUN, OTHER):
        child = child_id(run, "0.0")
        await life.opened(child)
        await answer(life.hall, child, "well", "0.0")
    await life.driven(RUN, OTHER)


def _spoil_heads(store: Any) -> None:
    """Damage what the store knows of where its runs stand."""
    spoil = getattr(store, "spoil_heads", None)
    spoil() if spoil is not None else store._db.execute("UPDATE runs SET head = x'00'")


async def damaged(life: Life) -> None:
    """Damage the head of a waiting run; whoever opens it makes it anew from the journal."""
    await life.opened()
    await life.driven()
    if life.stage.once("damage"):
        _spoil_heads(life.kept)
    await life.opened()
    await answer(life.hall, RUN, "well", "1.0")
    await life.driven()


async def found_out(life: Life) -> None:
    """Drive to the end; where the outcome of a call is unknown, a person looks and says what came of it."""
    await life.opened()
    await life.driven()
    await _find_out(life, RUN)


async def _find_out(life: Life, run: str) -> None:
    while doubted := questions(await life.opened(run)):
        made = life.stage.desk.register.get(f"{run}.{doubted[0].key}")
        found = {"outcome": "done", "value": made[0]} if made else {"outcome": "again"}
        await answer(life.hall, run, found, doubted[0].key)
        await life.driven(run)


async def suspected(life: Life) -> None:
    """Drive a run that has lost a holder before: it is on trial until it has been at work for a while."""
    await life.opened()
    if life.stage.once("loss"):
        await _lose(life, 1)
    await life.driven()


async def set_aside(life: Life) -> None:
    """Drive a run that has lost too many holders: it is set aside, and somebody takes it back."""
    await life.opened()
    if life.stage.once("loss"):
        await _lose(life, CRASHES)
    while True:
        with contextlib.suppress(Broken):
            await life.driven()
        if not (await life.kept.load(RUN)).status.startswith(SET_ASIDE):
            return
        await life.hall.store.take_back(RUN)
        await life.opened()


async def _lose(life: Life, times: int) -> None:
    """Let so many workers take the run and die at once."""
    for _ in range(times):
        lease = (await life.kept.load(RUN)).lease
        await life.kept.claim(RUN, lease, next(PROCESSES), life.hall.clock.now())
    await life.opened()


ARTICLE, BASKET = Article(), Basket()
TURN = child_machine(PLANNING, "turn-8")
OWNED = Provided(performers={Sound: sound, Moor: sound})
FAMILY = {OTHER: FORKING, child_id(RUN, "0.0"): WONDERING, child_id(OTHER, "0.0"): WONDERING}
SCENARIOS = (
    Scenario("agents", WRITING, plain, bind(WRITING, Provided()), ARTICLE),
    Scenario("agent with tools", PLANNING, plain, bind(PLANNING, Provided()), ARTICLE, {child_id(RUN, "0.0"): TURN}),
    Scenario("tool, pure", PURE, plain, bind(PURE, Provided()), ARTICLE),
    Scenario("tool, idempotent", IDEMPOTENT, plain, bind(IDEMPOTENT, Provided()), ARTICLE),
    Scenario("tool, check-first", CHECKED, plain, bind(CHECKED, Provided()), ARTICLE),
    Scenario("tool, at-most-once", ONCE, found_out, bind(ONCE, Provided()), ARTICLE, same=unmarked),
    Scenario("child", DELEGATING, plain, WITH_CHILD, BASKET, {child_id(RUN, "0.0"): CHILD}),
    Scenario("fan-out", fan("a", "b", "c", "d"), plain, HANDS, BASKET),
    Scenario("fan-out, one by one", fan("later 3", "later 1", "later 2"), plain, HANDS, BASKET),
    Scenario("retries", SHAKING, plain, HANDS, BASKET),
    Scenario("question", APPROVING, answered, HANDS, BASKET),
    Scenario("timer", RINGING, plain, HANDS, BASKET),
    Scenario("cancel", CLEARING, cancelled, HANDS, BASKET),
    Scenario("budget", SPENDING, plain, HANDS, BASKET),
    Scenario("slow", line("slow bread", "milk"), plain, HANDS, BASKET),
    Scenario("stop", line("slow bread", "milk"), stopped, HANDS, BASKET),
    Scenario("retry", POOR, retried, HANDS, BASKET),
    Scenario("two runs", TWO_RUNS, together, HANDS, BASKET, {OTHER: TWO_RUNS}),
    Scenario("records", RATED_TWICE, rated, Bindings({}), Game()),
    Scenario("records, two runs", RATED, raced, Bindings({}), Game(), {OTHER: RATED}, same=ends),
    Scenario("interrupt", speaking("spoken a"), interrupted, HANDS, BASKET, same=unmarked),
    Scenario("interrupt, two", speaking("spoken a", "spoken b"), interrupted, HANDS, BASKET, same=unmarked),
    Scenario("retry, mended", fetching(slip), mended, HANDS, BASKET, later=fetching(keep)),
    Scenario("retry, set aside", line("bread", "milk"), taken_up, HANDS, BASKET, same=unretried),
    Scenario("adoption, wording", WORDED, adopted, bind(WORDED, Provided()), ARTICLE, later=REWORDED),
    Scenario(
        "adoption, insisted",
        WORDED,
        adopted,
        bind(WORDED, Provided()),
        ARTICLE,
        later=REDIRECTED,
        insisted=Insistence("the review comes first now", "Ada"),
    ),
    Scenario("panel and form", PANEL, filled_in, bind(PANEL, Provided(functions={"member": writer})), Panel()),
    Scenario("own performers", SOUNDING, plain, bind(SOUNDING, OWNED), BASKET),
    Scenario("own performer, at-most-once", MOORING, found_out, bind(MOORING, OWNED), BASKET, same=unmarked),
    Scenario("fork, repeated", FORKING, forked, WITH_WONDERING, BASKET, FAMILY, same=unmarked),
    Scenario("damage", APPROVING, damaged, HANDS, BASKET),
    Scenario("trial", line("slow bread", "milk"), suspected, HANDS, BASKET),
    Scenario("set aside", line("bread", "milk"), set_aside, HANDS, BASKET),
)
