"""Secrets that are sent through every door of the real command are nowhere: not in the store, not on a screen, not in a
file, not in what a hook is told; and each run replays as it was.
"""

import asyncio
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moothall.app.config.access import opened
from tests.agents.planted import PLANTS, REGISTERED
from tests.app.listening import WRITES_DOWN, command
from tests.cli.machines import MACHINES
from tests.cli.process import moot as moot_process
from tests.cli.ran import Moot

pytestmark = pytest.mark.slow

ALL = "\n".join(plant.text for plant in PLANTS)
SETTINGS = {**REGISTERED, "MOOTHALL_SECRETS": "VAULT_PHRASE"}

OFFICE = '''
import hashlib, json, os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal
from moothall import (Answered, ChildDone, EffectFailed, Final, GaveUp, Machine, On, Replied, Returned, State,
                      ask, call, child, question)

ALL = json.loads((Path(__file__).parent / "all.json").read_text())
IN_A_TEMPLATE = ALL.replace("{", "{{").replace("}", "}}")
PROMPTS = Path(__file__).parent / "prompts.txt"
tries = []

@dataclass(frozen=True)
class Note:
    to: str
    text: str = ""
    key: str = os.environ["ACME_API_KEY"]

@dataclass(frozen=True)
class Verdict:
    mood: Literal["good", "bad"]
    why: str

async def listener(prompt: str) -> str:
    PROMPTS.write_text(prompt)
    return "noted"

async def look_up(what: str) -> dict:
    """Looks things up."""
    return {"found": ALL, what: [ALL]}

async def post(text: str) -> dict:
    tries.append(text)
    if len(tries) == 1:
        raise EffectFailed(ALL, usage={ALL: 1})
    used = hashlib.sha256(os.environ["ACME_API_KEY"].encode()).hexdigest()
    return {"receipt": ALL, "used": used, ALL: ALL}

async def fail(text: str = "", to: str = "") -> str:
    raise ValueError(ALL)

CHILD = Machine("clerking", data=Note, result=lambda note: {"text": note.text, "said": ALL},
    states=[State("working", enter=ask("clerk", "Do it: {to}")), Final("finished")],
    moves=[On("working", Replied, to="finished", do=lambda note, reply: replace(note, text=reply.text))])

OFFICE = Machine("office", data=Note, result=lambda note: note.text,
    states=[
        State("listening",  enter=ask(listener, IN_A_TEMPLATE + "{to}")),
        State("judging",    enter=ask("judge", "Judge {to}", reply=Verdict)),
        State("misjudging", enter=ask("liar", "Judge {to}", reply=Verdict)),
        State("consulting", enter=ask("expert", "Think about {text}", tools=[look_up])),
        State("posting",    enter=call(post, "text")),
        State("delegating", enter=child(CHILD, "to")),
        State("approving",  enter=question(IN_A_TEMPLATE + "Send {text}?", str)),
        State("failing",    enter=call(fail, "text")),
        Final("over"),
    ],
    moves=[
        On("listening",  Replied,   to="judging"),
        On("judging",    Replied,   to="misjudging", do=lambda note, reply: replace(note, text=reply.value.why)),
        On("misjudging", GaveUp,    to="consulting"),
        On("consulting", Replied,   to="posting",    do=lambda note, reply: replace(note, text=reply.text)),
        On("posting",    Returned,  to="delegating", do=lambda note, back: replace(note, text=json.dumps(back.value))),
        On("delegating", ChildDone, to="approving",  do=lambda note, done: replace(note, text=done.data["text"])),
        On("approving",  Answered,  to="failing",    do=lambda note, answer: replace(note, text=answer.value)),
        On("failing",    GaveUp,    to="over",       do=lambda note, gave_up: replace(note, text=gave_up.reason)),
    ])

BROKEN = Machine("broken", data=Note, states=[State("failing", enter=call(fail, "to")), Final("over")],
    moves=[On("failing", Returned, to="over")])
WAITING = Machine("waiting", data=Note, states=[State("asking", enter=question("Well?")), Final("over")],
    moves=[On("asking", Answered, to="over")])
'''

SCRIPT = {
    "judge": [{"text": ALL, "value": {"mood": "good", "why": ALL}, "usage": {ALL: 3}}],
    "liar": [{"value": {"mood": REGISTERED["ACME_API_KEY"] * 2, "why": ALL}}],
    "expert": [
        {"text": ALL, "calls": [{"tool": "look_up", "arguments": {"what": ALL}, "id": ALL}]},
        {"text": ALL, "calls": [{"tool": ALL, "id": "x"}]},
        ALL,
    ],
    "clerk": [ALL],
}


class Desk:
    """A folder in which the real command is used; all that it says and writes is kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said = ""
        (folder / "all.json").write_text(json.dumps(ALL))
        (folder / "office.py").write_text(OFFICE)
        (folder / "script.json").write_text(json.dumps(SCRIPT))

    def moot(self, *arguments: str, exits: int = 0) -> str:
        ran = moot_process(*arguments, home=self.folder, more=SETTINGS)
        self.said += ran.stdout + ran.stderr
        assert ran.returncode == exits, ran.stderr[-2000:]
        return ran.stdout

    def runs(self) -> list[str]:
        return [one["run"] for one in json.loads(self.moot("ls", "--json"))]

    def kept(self, run: str) -> Any:
        """What the store has of a run, as it lies there."""
        with opened(f"sqlite:{self.folder / 'moothall.db'}") as store:
            return {"entries": asyncio.run(store.entries(run)), "head": asyncio.run(store.load(run)).head}

    def written(self) -> Iterator[tuple[str, bytes]]:
        """All that the command has left behind or said."""
        yield "the screen", self.said.encode()
        for path in sorted(self.folder.iterdir()):
            if path.suffix in (".db", ".html", ".txt") or path.name.startswith(("moothall.db", "told", "export")):
                yield path.name, path.read_bytes()


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """Secrets were sent through every door."""
    desk = Desk(tmp_path_factory.mktemp("desk"))
    hook = command(desk.folder, WRITES_DOWN, str(desk.folder / "told.txt"))
    start = ("--model", "scripted:script.json", "--on-wait", hook)
    (desk.folder / "input.json").write_text(json.dumps({"to": ALL}))
    desk.moot("run", "office.py:OFFICE", "--input-json", "input.json", "--run-id", "mine", *start, exits=5)
    desk.moot("answer", "mine", "--text", ALL)
    desk.moot("run", "office.py:BROKEN", ALL, "--run-id", "broken", exits=1)
    desk.moot("run", "office.py:WAITING", ALL, "--run-id", "stopped", exits=5)
    desk.moot("answer", "stopped", "--text", REGISTERED["ACME_API_KEY"] * 2, exits=1)
    desk.moot("cancel", "stopped", "--reason", ALL)
    desk.moot("run", "office.py:OFFICE", json.dumps({"to": [REGISTERED["ACME_API_KEY"] * 2]}), exits=1)
    desk.moot("run", "office.py:OFFICE", "x", "--run-id", "sk-proj-1" + "a" * 40, exits=1)
    for run in desk.runs():
        desk.moot("show", run)
        desk.moot("show", run, "--json")
        desk.moot("export", run, "-o", f"export-{run}.json")
        desk.moot("report", run, "-o", f"{run}.html")
    desk.moot("watch", "mine")
    desk.moot("ls", "--json")
    desk.moot("doctor")
    return desk


def placeholders(value: Any) -> int:
    """How many secrets were replaced in a value."""
    return json.dumps(value).count("[secret:")


def events(run: Any, name: str) -> list[Any]:
    return [one["event"] for one in run["entries"] if one["event"]["name"] == name]


def effects(run: Any, kind: str) -> list[Any]:
    return [one["effect"] for entry in run["entries"] for one in entry["effects"] if one["kind"] == kind]


def test_no_planted_secret_is_anywhere(desk: Desk) -> None:
    found = [
        (place, plant.name, plant.secret[:12])
        for place, body in desk.written()
        for plant in PLANTS
        for form in {plant.secret, json.dumps(plant.secret)[1:-1], json.dumps(plant.secret, ensure_ascii=False)[1:-1]}
        if form.encode() in body
    ]
    assert found == []


def test_every_planted_secret_was_replaced_at_every_door(desk: Desk) -> None:
    mine, broken, stopped = desk.kept("mine"), desk.kept("broken"), desk.kept("stopped")
    turn, child = (desk.kept(run) for run in sorted(desk.runs()) if run.startswith("mine-"))
    [judged, _], [posted] = events(mine, "replied")[1:], events(mine, "returned")
    [first, second, third], [looked] = events(turn, "replied"), events(turn, "returned")
    doors = {
        "input data": events(mine, "run.started")[0]["data"]["to"],
        "a model's text": judged["text"],
        "a model's value": judged["value"]["why"],
        "a model's usage": [*judged["usage"]],
        "the id of a call": first["calls"][0]["id"],
        "the arguments of a call": first["calls"][0]["arguments"]["what"],
        "the name of a tool": second["calls"][0]["tool"],
        "a model's last word": third["text"],
        "what a tool found": looked["value"]["found"],
        "a tool's result": posted["value"]["receipt"],
        "a key of a tool's result": sorted(posted["value"].keys() - {"receipt", "used"}),
        "a tool's exception": events(mine, "effect.faltered")[1]["reason"],
        "what a failure cost": [*events(mine, "effect.faltered")[1]["usage"]],
        "a failure": events(mine, "error.effect")[1]["reason"],
        "a child's input": events(child, "run.started")[0]["data"]["to"],
        "a child's output": effects(child, "tell.parent")[0]["output"]["said"],
        "a child's end": events(mine, "done.invoke")[0]["data"]["said"],
        "a prompt template": effects(mine, "ask.agent")[0]["template"],
        "a person's answer": events(mine, "answered")[0]["value"],
        "a cancel's reason": events(stopped, "run.cancelled")[0]["reason"],
        "the reason of a run's end": broken["head"]["snapshot"]["reason"],
    }
    replaced = {door: placeholders(value) for door, value in doors.items()}
    planted = len(doors) * len(PLANTS)
    print(f"\n{planted} secrets planted at {len(doors)} doors, {sum(replaced.values())} replaced")
    assert set(replaced.values()) == {len(PLANTS)}, [door for door, count in replaced.items() if count != len(PLANTS)]
    asked = json.loads((desk.folder / "told.txt").read_text())["questions"][0]["prompt"]
    assert placeholders(asked) == 2 * len(PLANTS)
    assert placeholders((desk.folder / "prompts.txt").read_text()) == 2 * len(PLANTS)


def test_a_default_of_the_data_is_no_way_in(desk: Desk) -> None:
    assert events(desk.kept("mine"), "run.started")[0]["data"]["key"] == "[secret:ACME_API_KEY]"


def test_a_tool_still_has_its_own_environment(desk: Desk) -> None:
    used = hashlib.sha256(REGISTERED["ACME_API_KEY"].encode()).hexdigest()
    assert events(desk.kept("mine"), "returned")[0]["value"]["used"] == used


def test_what_is_quoted_in_a_refusal_has_no_secret_not_even_a_part(desk: Desk) -> None:
    lied = events(desk.kept("mine"), "error.effect")[0]["reason"]
    assert "mood: expected one of 'good', 'bad', got '[secret:ACME_API_KEY][secret:ACME_API_KEY]'" in lied
    assert (
        "moot answer: the answer: expected true or false, got '[secret:ACME_API_KEY][secret:ACME_API_KEY]'" in desk.said
    )
    assert "moot run: input.to: expected a text, got ['[secret:ACME_API_KEY][secret:ACME_API_KEY]']" in desk.said
    assert "moot run: the run id [secret:openai key] has a secret in it; choose another" in desk.said
    assert REGISTERED["ACME_API_KEY"][:9] not in desk.said


def test_every_run_replays_as_it_was(desk: Desk) -> None:
    runs = desk.runs()
    assert len(runs) == 5
    for run in runs:
        machine = {"broken": "BROKEN", "stopped": "WAITING"}.get(run, "OFFICE")
        replayed = desk.moot("replay", run, "--machine", f"office.py:{machine}")
        assert replayed.startswith(f"{run}: the same again")


def test_what_was_kept_before_a_secret_was_registered_is_not_shown(tmp_path: Path) -> None:
    key = "the-old-word-of-entry"
    (tmp_path / "machines.py").write_text(MACHINES)
    moot_process("run", "machines.py:PAINTED", key, "--run-id", "old", home=tmp_path)
    later = {"ENTRY_TOKEN": key}
    for arguments in (["show", "old"], ["show", "old", "--json"], ["export", "old"], ["ls", "--json"]):
        shown = moot_process(*arguments, home=tmp_path, more=later)
        assert (shown.returncode, key in shown.stdout + shown.stderr) == (0, False)
    assert moot_process("replay", "old", "--machine", "machines.py:PAINTED", home=tmp_path, more=later).returncode == 0


def test_the_doctor_names_secrets_and_never_shows_them(moot: Moot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", REGISTERED["ACME_API_KEY"])
    monkeypatch.setenv("CI_TOKEN", "1")
    told = moot("doctor")
    assert told.code == 0
    assert "ACME_API_KEY" in told.out
    assert re.search("secrets +warning +CI_TOKEN is not replaced: it has fewer than 8 characters", told.out)
    assert REGISTERED["ACME_API_KEY"] not in told.out


def test_a_named_secret_that_is_too_short_stops_the_command(moot: Moot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIN", "1234")
    monkeypatch.setenv("MOOTHALL_SECRETS", "PIN")
    ran = moot("run", "machines.py:LETTER", "Ada", "--run-id", "mine")
    assert (ran.code, ran.out) == (4, "")
    assert "moot run: MOOTHALL_SECRETS: PIN: it has fewer than 8 characters" in ran.err
    assert moot("doctor").code == 1
    assert moot("show", "mine").code == 1


def test_what_argparse_says_has_no_secrets(moot: Moot) -> None:
    ran = moot("run", "machines.py:LETTER", "--budget", PLANTS[0].secret)
    assert ran.code == 2
    assert "[secret:openai key]" in ran.err
    assert PLANTS[0].secret not in ran.err
