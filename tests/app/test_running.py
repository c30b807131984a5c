"""`run`, `arun`, `resume` and `answer`: the few lines of Python that a user writes."""

import asyncio
import gc
import json
import re
import weakref
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from moothall import (
    Answered,
    Budget,
    ChildDone,
    Conflict,
    DefinitionError,
    EffectFailed,
    Final,
    Machine,
    On,
    Outcome,
    Refused,
    Replied,
    Reply,
    Returned,
    State,
    answer,
    arun,
    ask,
    call,
    child,
    otherwise,
    question,
    resume,
    run,
    yes,
)
from moothall.app.kinds.bindings import Provided, bind
from moothall.app.runs.moothall import Moothall
from moothall.app.runs.news import Committed, News
from moothall.kernel.events import AttemptFailed


@dataclass(frozen=True)
class Letter:
    to: str
    text: str = ""


@dataclass(frozen=True)
class Stamp:
    cents: int


def keep(letter: Letter, reply: Replied) -> Letter:
    return replace(letter, text=f"{letter.text}{reply.text}")


async def shout(prompt: str) -> str:
    return prompt.upper()


async def post(to: str, text: str) -> str:
    return f"posted to {to}"


def letter(*enter: Any, **more: Any) -> Machine:
    """A machine with one state that asks, and a result."""
    return Machine(
        "letter",
        data=Letter,
        result=lambda letter: letter.text,
        states=[State("writing", enter=enter), Final("written")],
        moves=[On("writing", Replied, to="written", do=keep)],
        **more,
    )


SHOUTED = letter(ask(shout, "Dear {to}"))
NAMED = letter(ask("clerk", "Dear {to}"))
SENT = Machine(
    "sent",
    data=Letter,
    states=[
        State("writing", enter=ask("clerk", "Dear {to}")),
        State("approving", enter=question("Send {text}?")),
        State("posting", enter=call(post, "to", "text")),
        Final("posted"),
        Final("kept"),
    ],
    moves=[
        On("writing", Replied, to="approving", do=keep),
        On("approving", Answered, to="posting", when=yes),
        On("approving", otherwise, to="kept"),
        On("posting", Returned, to="posted"),
    ],
)


def test_a_run_ends_with_its_result_and_what_it_spent() -> None:
    outcome = run(SHOUTED, Letter("Ada"))
    assert isinstance(outcome, Outcome)
    assert (outcome.status, outcome.states, outcome.result) == ("done", ("written",), "DEAR ADA")
    assert outcome.data == Letter("Ada", "DEAR ADA")
    assert outcome.spent == {"calls": 1}
    assert outcome.run.startswith("letter-")


def test_a_text_is_enough_where_the_data_s_first_field_is_one() -> None:
    assert run(SHOUTED, "Bob").result == "DEAR BOB"


@pytest.mark.anyio
async def test_run_works_inside_a_running_loop_as_in_notebooks() -> None:
    assert asyncio.get_running_loop().is_running()
    assert run(SHOUTED, "Ada").result == "DEAR ADA"


@pytest.mark.anyio
async def test_an_error_inside_a_running_loop_reaches_the_caller() -> None:
    with pytest.raises(Refused, match=r"input\.to: expected a text"):
        run(SHOUTED, {"to": 3})


@pytest.mark.anyio
async def test_arun_is_the_same_for_code_that_is_already_async() -> None:
    assert (await arun(SHOUTED, "Ada")).result == "DEAR ADA"


def test_a_machine_that_nobody_has_any_more_is_not_held_by_its_cast() -> None:
    machine = letter(ask(shout, "Dear {to}"))
    assert bind(machine, Provided()) is bind(machine, Provided())
    held = weakref.ref(machine)
    del machine
    gc.collect()
    assert held() is None


def test_named_agents_are_played_by_the_functions_that_are_passed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(NAMED, "Ada", agents={"clerk": shout}).result == "DEAR ADA"
    assert capsys.readouterr().err == ""


def test_without_a_model_the_rehearsal_announces_itself_and_whom_it_stands_in_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    outcome = run(NAMED, "Ada")
    told = capsys.readouterr()
    assert outcome.result.startswith("[rehearsal] clerk")
    assert told.err == "no model is set: rehearsal stands in for clerk; its replies mean nothing\n"
    assert told.out == ""


def test_a_model_that_was_asked_for_is_not_announced(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(NAMED, "Ada", model="rehearsal").status == "done"
    assert capsys.readouterr().err == ""


def test_the_configured_model_plays_who_is_no_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "script.json").write_text(json.dumps({"clerk": ["from the script"]}))
    monkeypatch.setenv("MOOTHALL_MODEL", f"scripted:{tmp_path / 'script.json'}")
    assert run(NAMED, "Ada").result == "from the script"


@pytest.mark.anyio
async def test_the_files_of_settings_hold_as_long_as_a_moothall_is_open_and_the_environment_goes_before_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path))
    for name in ("first", "second", "third"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"clerk": [name]}))

    def set_in_file(name: str) -> None:
        (tmp_path / "settings.toml").write_text(f'model = "scripted:{tmp_path / name}.json"')

    set_in_file("first")
    async with Moothall("memory") as hall:
        said = [(await hall.run(NAMED, "Ada")).result]
        set_in_file("second")
        said.append((await hall.run(NAMED, "Ada")).result)
        monkeypatch.setenv("MOOTHALL_MODEL", f"scripted:{tmp_path / 'third.json'}")
        said.append((await hall.run(NAMED, "Ada")).result)
        monkeypatch.delenv("MOOTHALL_MODEL")
    said.append((await arun(NAMED, "Ada", store="memory")).result)
    assert said == ["first", "first", "third", "second"]


def test_a_script_that_has_no_reply_left_fails_the_run_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text(json.dumps({"clerk": []}))
    outcome = run(NAMED, "Ada", model=f"scripted:{tmp_path / 'script.json'}")
    assert outcome.status == "failed"
    assert outcome.reason == f"clerk: {tmp_path / 'script.json'} has 0 replies for 'clerk'; this would be number 1"


@pytest.mark.parametrize(
    ("model", "complaint"),
    [("gpt-99", "'gpt-99' is not a model"), ("scripted:none.json", r"none\.json: the script cannot be read")],
)
def test_a_model_that_is_none_is_refused_before_anything_is_kept(model: str, complaint: str) -> None:
    with pytest.raises(DefinitionError, match=complaint):
        run(NAMED, "Ada", model=model, run_id="first")
    assert run(NAMED, "Ada", model="rehearsal", run_id="first").status == "done"


def test_a_reply_may_carry_its_usage_and_a_budget_counts_it() -> None:
    async def clerk(prompt: str) -> Reply:
        return Reply("x", usage={"tokens": 60})

    machine = Machine(
        "long",
        data=Letter,
        states=[State("writing", enter=ask(clerk, "more")), Final("written")],
        moves=[On("writing", Replied, to="writing", do=keep)],
    )
    outcome = run(machine, "Ada", budget=Budget(tokens=100))
    assert (outcome.status, outcome.reason) == ("limited", "limit of 100 tokens reached in writing")
    assert outcome.data.text == "xx"
    assert outcome.spent == {"calls": 2, "tokens": 120}


def test_the_caller_s_budget_goes_before_the_machine_s() -> None:
    machine = letter(ask(shout, "Dear {to}"), budget=Budget(calls=0))
    assert run(machine, "Ada").status == "limited"
    assert run(machine, "Ada", budget=Budget(calls=1)).status == "done"


def test_a_reply_of_the_wrong_shape_fails_the_run_and_says_where() -> None:
    async def clerk(prompt: str) -> dict[str, str]:
        return {"cents": "many"}

    outcome = run(letter(ask(clerk, "Which stamp?", reply=Stamp)), "Ada")
    assert outcome.status == "failed"
    assert "the reply has the wrong shape: replied.cents: expected a whole number, got 'many'" in outcome.reason


def test_a_move_that_goes_wrong_fails_the_run_and_names_its_place() -> None:
    machine = Machine(
        "clumsy",
        data=Letter,
        states=[State("writing", enter=ask(shout, "Dear {to}")), Final("written")],
        moves=[On("writing", Replied, to="written", do=lambda letter, reply: 1 / 0)],  # type: ignore[arg-type, return-value]
    )
    outcome = run(machine, "Ada")
    assert outcome.status == "failed"
    assert outcome.reason.startswith("writing on Replied: ZeroDivisionError: division by zero (in <lambda>, ")
    assert re.search(r"test_running\.py:\d+\)$", outcome.reason)


def test_a_result_that_goes_wrong_fails_the_run_and_names_its_place() -> None:
    final = Final("over", result=lambda letter, event: letter.nothing)
    outcome = run(Machine("ending", data=Letter, states=[final], moves=[]), "Ada")
    assert outcome.status == "failed"
    assert outcome.reason.startswith("over, result: AttributeError: 'Letter' object has no attribute 'nothing' (in ")


def test_two_functions_of_one_name_are_refused() -> None:
    async def other(prompt: str) -> str:
        return prompt

    other.__name__ = "shout"
    with pytest.raises(DefinitionError, match="two functions are called 'shout'; rename one"):
        run(letter(ask(shout, "a"), ask(other, "b")), "Ada")


@pytest.mark.parametrize("run_id", ["a b", "../x", "", "-x", "a.b", "ü", "x" * 3 + "\n", "x" * 129])
def test_what_is_no_run_id_is_refused(run_id: str) -> None:
    with pytest.raises(Refused, match="is not a run id; use letters, digits and dashes, at most 128"):
        run(SHOUTED, "Ada", run_id=run_id)


def test_an_id_may_have_128_letters_and_a_machine_s_name_more() -> None:
    assert run(SHOUTED, "Ada", run_id="x" * 128).status == "done"
    long = Machine("long " * 99, states=[Final("over")], moves=[])
    assert run(long).status == "done"


def test_an_empty_address_is_no_store() -> None:
    with pytest.raises(DefinitionError, match="'' is not a store"):
        run(SHOUTED, "Ada", store="")


def test_a_run_id_that_is_taken_is_a_conflict_with_a_remedy() -> None:
    run(SHOUTED, "Ada", run_id="mine")
    with pytest.raises(Conflict, match="run mine exists already; choose another id, or resume it"):
        run(SHOUTED, "Bob", run_id="mine")


def test_a_run_that_asks_a_person_waits_and_says_what_for() -> None:
    outcome = run(SENT, "Ada", agents={"clerk": shout}, run_id="post")
    [asked] = outcome.questions
    assert outcome.status == "waiting"
    assert (asked.id, asked.prompt, asked.schema) == ("1.0", "Send DEAR ADA?", {"type": "boolean"})


def test_an_answered_run_goes_on_to_its_end() -> None:
    run(SENT, "Ada", agents={"clerk": shout}, run_id="post")
    outcome = answer("post", True, agents={"clerk": shout})
    assert (outcome.status, outcome.states) == ("done", ("posted",))


def test_answering_again_changes_nothing_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    run(SENT, "Ada", agents={"clerk": shout}, run_id="post")
    answer("post", False, agents={"clerk": shout})
    outcome = answer("post", True, question="1.0", agents={"clerk": shout})
    assert outcome.states == ("kept",)
    assert capsys.readouterr().err == "this question was answered before; the first answer stands\n"


def test_resuming_a_waiting_or_finished_run_changes_nothing() -> None:
    run(SENT, "Ada", agents={"clerk": shout}, run_id="post")
    assert resume("post", agents={"clerk": shout}).status == "waiting"
    answer("post", True, agents={"clerk": shout})
    again = resume("post", agents={"clerk": shout})
    assert (again.status, again.states) == ("done", ("posted",))


def test_a_run_that_began_with_functions_does_not_go_on_without_them() -> None:
    run(SENT, "Ada", agents={"clerk": shout}, run_id="post")
    with pytest.raises(DefinitionError, match="no function plays clerk: the run began with functions of its own"):
        resume("post")


def test_a_run_that_began_with_a_rehearsal_goes_on_with_it_and_announces_it_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run(SENT, "Ada", run_id="post")
    assert resume("post").status == "waiting"
    assert capsys.readouterr().err.count("rehearsal stands in") == 1


def test_a_run_is_not_resumed_under_a_definition_that_would_have_gone_another_way() -> None:
    run(SENT, "Ada", agents={"clerk": shout}, run_id="post")
    changed = Machine(SENT.name, data=Letter, states=SENT.states, moves=SENT.moves[1:])
    with pytest.raises(DefinitionError, match="run post cannot go on under this definition of 'sent': entry 1 differs"):
        resume("post", changed, agents={"clerk": shout})


def test_a_machine_made_on_the_fly_must_be_passed_to_resume_its_run() -> None:
    machine = Machine(SENT.name, data=Letter, states=SENT.states, moves=SENT.moves)
    run(machine, "Ada", agents={"clerk": shout}, run_id="post")
    with pytest.raises(DefinitionError, match="began with a machine that was made on the fly"):
        resume("post", agents={"clerk": shout})
    assert resume("post", machine, agents={"clerk": shout}).status == "waiting"


def test_a_run_that_does_not_exist_is_refused() -> None:
    with pytest.raises(Refused, match="there is no run 'none' in this store; `moot ls` shows what there is"):
        resume("none")


@pytest.mark.anyio
@pytest.mark.parametrize("is_child", [False, True])
async def test_what_waits_for_a_later_attempt_is_tried_at_once_when_a_person_resumes_the_run(
    tmp_path: Path, is_child: bool
) -> None:
    is_closed, has_failed = True, asyncio.Event()

    async def clerk(prompt: str) -> str:
        if is_closed:
            raise EffectFailed("closed until tomorrow", retry_after=3600)
        return "open"

    later = Machine(
        "later",
        states=[State("asking", enter=ask(clerk, "?")), Final("over")],
        moves=[On("asking", Replied, to="over")],
    )
    above = Machine(
        "above",
        states=[State("starting", enter=child(later)), Final("over")],
        moves=[On("starting", ChildDone, to="over")],
    )
    machine = above if is_child else later
    address = f"sqlite:{tmp_path / 'runs.db'}"

    def listen(news: News) -> None:
        if isinstance(news, Committed) and isinstance(news.entry.event, AttemptFailed):
            has_failed.set()

    async with Moothall(address, listeners=[listen]) as hall:
        await hall.start(machine, run_id="late")
        await asyncio.wait_for(has_failed.wait(), 30)
    is_closed = False
    async with Moothall(address) as hall:
        outcome = await asyncio.wait_for(hall.resume("late", machine), 30)
    assert outcome.status == "done"
