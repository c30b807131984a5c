"""`moot debate`, killed with SIGKILL in the middle of any call, and resumed; questions and answers across processes.

The model notes the key of every call in a file that survives; no call whose reply was committed is made again.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import moot
from tests.kills.survivors import NEVER, committed, entries, kill_when, noted

RUN, DONE, WAITING = "till", 0, 5
NAMES = ("architect", "kiss")
SAID: dict[str, Any] = {
    "Before it begins": {"questions": []},
    "Propose a solution": {"text": "One file.", "confidence": 60},
    "You review": {"reviews": [{"label": "A", "text": "Too short."}]},
    "Refine your own": {"text": "One file, and a backup.", "confidence": 70},
    "Say how sure you are": {"confidence": 90},
    "Write the solution": {"description": "One file with a backup.", "confidence": 80},
}
"""What everybody says, by what is asked."""


class Debate:
    """A debate as real commands in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "calls.log"
        self.write_script()
        self.begin: tuple[str, ...] = (
            *("debate", "Where to keep sales?", "-a", ",".join(NAMES), "--clarify", "--run-id", RUN),
            *("--model", f"scripted:{folder / 'script.json'},log={self.log}"),
        )

    def write_script(self, hanging: tuple[str, str] | None = None) -> None:
        """Replies by what is asked; the one of this agent to this never comes."""
        rules: list[dict[str, Any]] = []
        if hanging is not None:
            agent, asked = hanging
            parts = asked.split("|")
            rules.append({"agent": agent, "contains": parts, "value": {}, "delay": NEVER})
        rules += [
            {"agent": "kiss", "contains": ["Before it begins", "A: two", "A: NA"], "value": {"questions": []}},
            {"agent": "kiss", "contains": ["Before it begins", "A: two"], "value": {"questions": ["Since when?"]}},
            {
                "agent": "architect",
                "contains": ["Before it begins", "A: two"],
                "value": {"questions": ["How many tills?"]},
            },
            {"agent": "architect", "contains": "Before it begins", "value": {"questions": ["How many tills?"]}},
            *({"contains": asked, "value": value} for asked, value in SAID.items()),
        ]
        (self.folder / "script.json").write_text(json.dumps({"rules": rules}))

    def calls(self) -> list[str]:
        return noted(self.log)

    def answer(self, **given: str) -> int:
        (self.folder / "answers.json").write_text(json.dumps(given))
        return moot("answer", RUN, "--json", "answers.json", home=self.folder).returncode

    def result(self) -> Any:
        return json.loads(moot("resume", RUN, "--json", home=self.folder).stdout)


@pytest.mark.covers("D2", "D7", "D11", "D13")
def test_follow_up_questions_survive_a_kill_between_three_processes_and_nothing_is_asked_twice(tmp_path: Path) -> None:
    debate = Debate(tmp_path)
    assert moot(*debate.begin, home=tmp_path).returncode == WAITING
    assert len(debate.calls()) == 2
    debate.write_script(hanging=("kiss", "Before it begins|A: two"))
    (tmp_path / "answers.json").write_text(json.dumps({"q1": "two"}))
    kill_when(lambda: _is_settled(debate, 4), ("answer", RUN, "--json", "answers.json"), tmp_path)
    assert entries(tmp_path, RUN)[-1]["to"] == ["Clarification"]
    over = committed(tmp_path, RUN)
    debate.write_script()
    waiting = moot("resume", RUN, "--json", home=tmp_path)
    assert waiting.returncode == WAITING
    asked = json.loads(waiting.stdout)["questions"][0]["schema"]["properties"]
    assert {name: known["description"] for name, known in asked.items()} == {
        "q1": "How many tills?",
        "q2": "Since when?",
    }
    assert asked["q1"]["earlier"] == "two"
    assert not over & set(debate.calls()[4:])
    assert debate.answer(q2="NA") == DONE
    told = debate.result()
    assert [(known["agent"], known["text"], known["answer"]) for known in told["clarifications"]] == [
        ("architect", "How many tills?", "two"),
        ("kiss", "Since when?", "NA"),
    ]
    assert sum(times - 1 for times in Counter(debate.calls()).values()) == 1


CALLS = [
    *((name, "Before it begins") for name in NAMES),
    *((name, "Propose a solution") for name in NAMES),
    *((name, "You review") for name in NAMES),
    *((name, "Refine your own") for name in NAMES),
    ("judge", "Say how sure you are"),
    ("judge", "Write the solution"),
]


@pytest.mark.covers("D3")
@pytest.mark.parametrize(
    "call",
    [CALLS[0], *(pytest.param(call, marks=pytest.mark.slow) for call in CALLS[1:-1]), CALLS[-1]],
    ids=[" ".join(call) for call in CALLS],
)
def test_a_debate_killed_in_the_middle_of_any_call_repeats_no_call_that_was_answered(
    tmp_path: Path, call: tuple[str, str]
) -> None:
    debate = Debate(tmp_path)
    begin = tuple(part for part in debate.begin if part != "--clarify")
    if call[1] == "Before it begins":
        begin = debate.begin
    debate.write_script(hanging=call)
    before = {"Before it begins": 2, "Propose a solution": 2, "You review": 4, "Refine your own": 6}
    reached = before.get(call[1], 7 if "sure" in call[1] else 8)
    kill_when(lambda: _is_settled(debate, reached), begin, tmp_path)
    over, made = committed(tmp_path, RUN), debate.calls()
    debate.write_script()
    ran = moot("resume", RUN, home=tmp_path)
    assert ran.returncode == (WAITING if call[1] == "Before it begins" else DONE)
    assert not over & set(debate.calls()[len(made) :])
    assert sum(times - 1 for times in Counter(debate.calls()).values()) == 1
    assert moot("replay", RUN, home=tmp_path).returncode == 0


def _is_settled(debate: Debate, reached: int) -> bool:
    """Whether so many were asked, and everybody but the one who never replies has come back."""
    if len(debate.calls()) < reached:
        return False
    ended = {entry["cause"] for entry in entries(debate.folder, RUN)}
    return sum(key.removeprefix(f"{RUN}.") in ended for key in debate.calls()) == reached - 1


# tools

TOOL = """import asyncio
import os

async def tills(shop: str, key: str) -> int:
    with open(os.environ["MOOTHALL_HOME"] + "/tools.log", "a") as log:
        print(key, shop, file=log)
    if os.path.exists(os.environ["MOOTHALL_HOME"] + "/hang-" + shop):
        await asyncio.sleep(3600)
    return 7
"""
SHOPS = ("north", "south", "east")
ASKED = ("Propose a solution", "You review", "Refine your own")
EVERY = len(NAMES) * len(SHOPS) * len(ASKED)
KILLS = [(asked, shop) for asked in ASKED for shop in ("south", "")]


def shop_of(asked: str, shop: str) -> str:
    """The shop as it is called when this is asked."""
    return f"{shop}-{ASKED.index(asked)}"


class DebateWithTools(Debate):
    """Both agents have a tool called for three shops, one after the other, before each reply."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        (folder / "own.py").write_text(TOOL)
        seats = [{"id": name, "role": name, "tools": ["tills"], "toolCallLimit": 3} for name in NAMES]
        (folder / "config.json").write_text(json.dumps({"agents": seats}))
        self.begin = (
            *("debate", "Where to keep sales?", "-c", str(folder / "config.json"), "--run-id", RUN),
            *("--functions", str(folder / "own.py"), "--model", f"scripted:{folder / 'script.json'},log={self.log}"),
        )

    def write_script(self, hanging: tuple[str, str] | None = None) -> None:
        rules: list[dict[str, Any]] = []
        for asked in ASKED:
            known = [shop_of(asked, shop) for shop in SHOPS]
            if hanging is not None and hanging[1] == asked:
                rules.append({"agent": hanging[0], "contains": [asked, *known], "value": {}, "delay": NEVER})
            rules.append({"contains": [asked, *known], "value": SAID[asked]})
            for number in (2, 1, 0):
                call = {"tool": "tills", "arguments": {"shop": known[number]}}
                rules.append({"contains": [asked, *known[:number]], "calls": [call]})
        rules += [{"contains": asked, "value": value} for asked, value in SAID.items()]
        (self.folder / "script.json").write_text(json.dumps({"rules": rules}))

    def made(self) -> list[str]:
        """The keys of the calls of tools that were begun."""
        return noted(self.folder / "tools.log")

    def finished(self) -> set[str]:
        """The keys of those whose ends are in a journal."""
        turns = {key.rpartition(".")[0].rpartition(".")[0] for key in self.made()}
        return {key for turn in turns for key in committed(self.folder, turn)} & set(self.made())

    def hangs_in(self, shop: str) -> bool:
        """Whether both agents are in the middle of a call for this shop."""
        log = self.folder / "tools.log"
        return log.exists() and log.read_text().count(f" {shop}\n") == len(NAMES)


@pytest.mark.slow
@pytest.mark.covers("D3", "D8")
@pytest.mark.parametrize(("asked", "shop"), KILLS, ids=[f"{asked} {shop or 'reply'}" for asked, shop in KILLS])
def test_a_debate_killed_in_the_middle_of_any_tool_repeats_no_call_that_came_back(
    tmp_path: Path, asked: str, shop: str
) -> None:
    debate, node = DebateWithTools(tmp_path), ASKED.index(asked)
    stuck = tmp_path / f"hang-{shop_of(asked, shop)}"
    if shop:
        stuck.touch()
        kill_when(lambda: debate.hangs_in(shop_of(asked, shop)), debate.begin, tmp_path)
        stuck.unlink()
    else:
        debate.write_script(hanging=("kiss", asked))
        asks = len(NAMES) * (len(SHOPS) + 1) * (node + 1)
        kill_when(lambda: len(debate.calls()) == asks, debate.begin, tmp_path)
        debate.write_script()
    over, made = debate.finished(), debate.made()
    ended = node * len(SHOPS) + (SHOPS.index(shop) if shop else len(SHOPS))
    assert len(over) == len(NAMES) * ended
    assert moot("resume", RUN, home=tmp_path).returncode == DONE
    assert not over & set(debate.made()[len(made) :])
    assert len(set(debate.made())) == EVERY
    assert len(debate.made()) - EVERY == (len(NAMES) if shop else 0)
    told = debate.result()
    assert [use["end"] for use in told["tool_calls"]] == ["returned"] * EVERY
    assert [seat["tool_calls"] for seat in told["agents"]] == [EVERY // 2] * 2
