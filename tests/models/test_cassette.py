"""`cassette:FILE` records what a model said and says it again; a miss names the nearest question."""

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from moothall.agents.ask import ToolCall
from moothall.agents.ports import Reply, Request
from moothall.agents.secrets import Cleaner, Secret
from moothall.errors import DefinitionError, EffectFailed
from moothall.models.cassette import CassetteModel, read
from tests.agents.planted import FORMATS, REGISTERED, Plant
from tests.models.asking import LOOK, request

TEXT = Reply("The sea rises.", usage={"tokens": 9, "usd": 0.01})
CALLING = Reply("", {"good": True}, {}, (ToolCall("look", {"place": "Ys"}, "a"),))


class Counted:
    """A model that gives one reply after the other and counts."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.calls = 0

    async def reply(self, request: Request) -> Reply:
        self.calls += 1
        return self.replies.pop(0)


def ask(model: CassetteModel, asked: Request) -> Reply:
    return asyncio.run(model.reply(asked))


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    return tmp_path / "tapes" / "one.jsonl"


def record(file: Path, *pairs: tuple[Request, Reply], name: str = "openai:m") -> None:
    for asked, said in pairs:
        assert ask(CassetteModel(file, "record", Counted(said), name), asked) == said


def missed(file: Path, asked: Request, name: str = "") -> str:
    with pytest.raises(DefinitionError) as raised:
        ask(CassetteModel(file, "replay", None, name), asked)
    return str(raised.value)


def test_what_was_recorded_is_said_again_without_a_model(tape: Path) -> None:
    other = replace(request(tools=(LOOK,)), nth=2)
    record(tape, (request(), TEXT), (other, CALLING))
    replayed = CassetteModel(tape, "replay")
    assert ask(replayed, other) == CALLING
    assert ask(replayed, request()) == TEXT


def test_auto_asks_only_what_was_never_asked(tape: Path) -> None:
    inner = Counted(TEXT, Reply("another"))
    model = CassetteModel(tape, "auto", inner, "openai:m")
    assert [ask(model, request()) for _ in range(3)] == [TEXT] * 3
    assert (ask(model, replace(request(), prompt="Write about wind"))).text == "another"
    assert inner.calls == 2


def test_record_always_asks_and_the_latest_reply_counts(tape: Path) -> None:
    record(tape, (request(), Reply("old")), (request(), Reply("new")))
    assert ask(CassetteModel(tape, "replay"), request()) == Reply("new")


def test_a_line_is_json_that_a_person_can_read(tape: Path) -> None:
    record(tape, (request(), TEXT))
    [line] = tape.read_text("utf-8").splitlines()
    told: dict[str, Any] = json.loads(line)
    assert told["prompt"] == "Write about tides"
    assert told["reply"]["text"] == "The sea rises."
    assert {"model", "agent", "nth", "prompt_hash", "messages", "tools", "schema"} == set(told["asked"])
    assert tape.stat().st_mode & 0o077 == 0


CHANGES = {
    "prompt": (replace(request(), prompt="Write about wind"), "prompt: 'Write about tides' is now 'Write about wind'"),
    "nth": (replace(request(), nth=2), "nth: '1' is now '2'"),
    "agent": (replace(request(), agent="critic"), "agent: '\"writer\"' is now '\"critic\"'"),
    "tools": (request(tools=(LOOK,)), "tools: '[]' is now '[{"),
    "messages": (request(messages=({"role": "user", "text": "again"},)), "messages: '[]' is now '[{"),
    "schema": (request({"type": "integer"}), "schema: 'null' is now '{"),
}


@pytest.mark.parametrize(("asked", "words"), CHANGES.values(), ids=CHANGES.keys())
def test_a_miss_names_the_nearest_question_and_what_differs(tape: Path, asked: Request, words: str) -> None:
    far = replace(request(), prompt="Something else altogether", nth=9, agent="clerk")
    record(tape, (far, TEXT), (request(), TEXT))
    told = missed(tape, asked)
    assert "the nearest is line 2, where it differs: " in told
    assert words in told
    assert told.count("is now") == 1
    assert told.endswith("record it with mode=auto")


def test_another_model_is_a_miss_and_no_model_takes_any(tape: Path) -> None:
    record(tape, (request(), TEXT), name="openai:m")
    assert "model: '\"openai:m\"' is now '\"openai:n\"'" in missed(tape, request(), "openai:n")
    assert ask(CassetteModel(tape, "replay", None, ""), request()) == TEXT


def test_the_difference_in_a_long_prompt_is_shown_where_it_is(tape: Path) -> None:
    record(tape, (replace(request(), prompt="x" * 5_000 + "tides"), TEXT))
    told = missed(tape, replace(request(), prompt="x" * 5_000 + "winds"))
    assert "…xxxxxxxxxxxxxxxxxxxxtides' is now '…xxxxxxxxxxxxxxxxxxxxwinds'" in told


def test_half_a_line_that_a_crash_left_is_passed_over_and_taken_away(tape: Path) -> None:
    record(tape, (request(), TEXT))
    whole = tape.read_bytes()
    tape.write_bytes(whole + whole[: len(whole) // 2])
    assert ask(CassetteModel(tape, "replay"), request()) == TEXT
    record(tape, (replace(request(), nth=2), TEXT))
    assert len(list(read(tape))) == 2


def test_a_line_in_the_middle_that_is_none_is_named(tape: Path) -> None:
    record(tape, (request(), TEXT))
    tape.write_bytes(b'{"asked": 1}\n' + tape.read_bytes())
    assert "line 1 cannot be read: " in missed(tape, request())


def test_failures_are_not_recorded(tape: Path) -> None:
    class Failing:
        async def reply(self, request: Request) -> Reply:
            raise EffectFailed("down")

    with pytest.raises(EffectFailed):
        ask(CassetteModel(tape, "record", Failing()), request())
    assert not tape.exists()


def test_any_text_can_be_recorded(tape: Path) -> None:
    said = Reply("a\x00b \u2028 → 👩‍🚀")
    asked = replace(request(), prompt="half \ud800 a character")
    record(tape, (asked, said))
    assert ask(CassetteModel(tape, "replay"), asked) == said


APPENDING = """
import sys
from pathlib import Path
from moothall.agents.ports import Reply
from moothall.models.cassette import Line, append, asked_by
from tests.models.asking import request
for number in range(50):
    append(Path(sys.argv[1]), Line(asked_by(request(), sys.argv[2]), "p" * 20_000, Reply(f"{number}")))
"""


@pytest.mark.slow
def test_lines_of_several_processes_do_not_run_into_each_other(tape: Path) -> None:
    path = os.pathsep.join(sys.path)
    writers = [
        subprocess.Popen([sys.executable, "-c", APPENDING, tape, name], env={**os.environ, "PYTHONPATH": path})
        for name in ("a", "b", "c")
    ]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    lines = list(read(tape))
    said = {name: [line.reply.text for line in lines if line.asked.model == name] for name in ("a", "b", "c")}
    assert said == {name: [str(number) for number in range(50)] for name in "abc"}


@pytest.mark.parametrize("mode", ["record", "auto"])
def test_who_is_to_record_needs_a_model(tape: Path, mode: Any) -> None:
    with pytest.raises(DefinitionError, match=f"mode={mode} asks a model; name one with ,model=NAME"):
        CassetteModel(tape, mode)


def test_a_cassette_that_is_not_there_is_named(tape: Path) -> None:
    with pytest.raises(DefinitionError, match="there is no such file; record one"):
        CassetteModel(tape, "replay")


@pytest.mark.parametrize("place", ["file/one.jsonl", "folder", "nowhere"])
def test_nobody_is_asked_where_the_cassette_cannot_be_written(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone" / "away")
    model = Counted(TEXT)
    with pytest.raises(DefinitionError, match=f"{place} cannot be written: .*; nothing was asked"):
        ask(CassetteModel(tmp_path / place, "record", model), request())
    assert model.calls == 0


def test_a_full_disk_is_a_failure_of_the_world() -> None:
    with pytest.raises(EffectFailed, match="cannot be written: No space left on device"):
        ask(CassetteModel(Path("/dev/full"), "record", Counted(TEXT)), request())


PLANTED = REGISTERED["ACME_API_KEY"]
TOLD = Reply(
    f"the key is {PLANTED}", {"key": [PLANTED]}, {"tokens": 3}, (ToolCall("look", {"place": f"?key={PLANTED}"}, "a"),)
)


def test_a_cassette_has_no_secret_in_it_and_says_the_same_when_it_is_played(tape: Path) -> None:
    clean = Cleaner([Secret("ACME_API_KEY", PLANTED)])
    asked = replace(request(messages=({"role": "user", "text": PLANTED},)), prompt=f"use {PLANTED}", system=PLANTED)
    live = ask(CassetteModel(tape, "record", Counted(TOLD), f"openai:{PLANTED}", clean=clean), asked)
    assert PLANTED not in tape.read_text("utf-8")
    assert live.value == {"key": ["[secret:ACME_API_KEY]"]}
    assert ask(CassetteModel(tape, "replay", clean=clean), asked) == live


@pytest.mark.parametrize("plant", FORMATS, ids=lambda plant: plant.name)
def test_a_key_that_is_known_by_its_format_is_never_recorded(tape: Path, plant: Plant) -> None:
    ask(CassetteModel(tape, "record", Counted(Reply(plant.text)), "openai:m"), request())
    assert plant.secret not in json.loads(tape.read_text("utf-8"))["reply"]["text"]
