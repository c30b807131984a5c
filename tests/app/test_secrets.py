"""Runs with secrets in them: what agents see, what is kept, and what a run does that cannot take a placeholder."""

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pytest

from moothall import Answered, Final, GaveUp, Machine, On, Replied, State, answer, ask, fork, question, resume, run
from moothall.agents.ports import Reply
from moothall.app.config.access import opened
from moothall.app.config.settings import cleaner
from moothall.app.runs.view import export
from moothall.errors import Refused

KEY = "the-word-of-entry-1001"


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOOR_TOKEN", KEY)
    monkeypatch.setenv("POSTGRES_PASSWORD", "postgres")


@dataclass(frozen=True)
class Note:
    to: str
    text: str = ""


def asking(agent: Any, template: str, reply: Any = None) -> Machine:
    return Machine(
        "asking",
        data=Note,
        result=lambda note: note.text,
        states=[State("asking", enter=ask(agent, template, reply=reply)), Final("over")],
        moves=[
            On(
                "asking",
                Replied,
                to="over",
                do=lambda note, replied: replace(note, text=str(replied.value or replied.text)),
            ),
            On("asking", GaveUp, to="over", do=lambda note, gave_up: replace(note, text=gave_up.reason)),
        ],
    )


def test_an_agent_sees_what_the_journal_has() -> None:
    seen = []

    async def clerk(prompt: str) -> str:
        seen.append(prompt)
        return f"{prompt} {KEY}"

    outcome = run(asking(clerk, "Open {to} with " + KEY), f"the door ({KEY})")
    assert seen == ["Open the door ([secret:DOOR_TOKEN]) with [secret:DOOR_TOKEN]"]
    assert outcome.result == f"{seen[0]} [secret:DOOR_TOKEN]"


def test_a_secret_that_only_a_template_and_the_data_make_together_does_not_reach_the_agent() -> None:
    seen = []

    async def clerk(prompt: str) -> str:
        seen.append(prompt)
        return "done"

    run(asking(clerk, "Open with the-word-of-{to}"), "entry-1001")
    assert seen == ["Open with [secret:DOOR_TOKEN]"]


@dataclass(frozen=True)
class Database:
    kind: Literal["postgres", "mysql"]
    address: str


def test_choices_and_the_names_in_a_table_are_no_secrets() -> None:
    async def postgres(prompt: str) -> Database:
        return Database("postgres", "at postgres")

    outcome = run(asking(postgres, "Which, {to}?", Database), "Ada")
    assert outcome.result == "Database(kind='postgres', address='at [secret:POSTGRES_PASSWORD]')"


@dataclass(frozen=True)
class Plain:
    text: str

    def __post_init__(self) -> None:
        if "[" in self.text:
            raise ValueError("no brackets, please")


def test_a_reply_whose_class_does_not_take_a_placeholder_is_a_failure_that_the_machine_hears_of() -> None:
    async def clerk(prompt: str) -> Plain:
        return Plain(KEY)

    outcome = run(asking(clerk, "Go on, {to}", Plain), "Ada")
    assert outcome.result == "Plain does not take a text in which a secret was replaced: no brackets, please"


def test_a_usage_that_cannot_be_counted_is_quoted_without_its_secrets() -> None:
    async def clerk(prompt: str) -> Reply:
        return Reply("done", usage={"tokens": [KEY]})  # type: ignore[dict-item]

    assert "got ['[secret:DOOR_TOKEN]']" in run(asking(clerk, "Go on, {to}"), "Ada").result


def test_a_run_goes_on_in_another_process_with_what_the_journal_has(tmp_path: Any) -> None:
    seen = []

    async def dying(prompt: str) -> str:
        raise KeyboardInterrupt

    async def clerk(prompt: str) -> str:
        seen.append(prompt)
        return KEY

    address = f"sqlite:{tmp_path / 'runs.db'}"
    machine = asking("clerk", "Open {to} with " + KEY)
    with pytest.raises(KeyboardInterrupt):
        run(machine, KEY, agents={"clerk": dying}, store=address, run_id="mine")
    assert resume("mine", machine, agents={"clerk": clerk}, store=address).status == "done"
    assert seen == ["Open [secret:DOOR_TOKEN] with [secret:DOOR_TOKEN]"]
    assert KEY.encode() not in b"".join(path.read_bytes() for path in tmp_path.glob("runs.db*"))


def test_the_name_of_a_model_is_kept_without_its_password(tmp_path: Any) -> None:
    (tmp_path / f"{KEY}.json").write_text('{"clerk": ["done"]}')
    address = f"sqlite:{tmp_path / 'runs.db'}"
    run(asking("clerk", "Go on, {to}"), "x", model=f"scripted:{tmp_path / KEY}.json", store=address, run_id="mine")
    with opened(address) as store:
        assert asyncio.run(export(store, "mine"))["record"].model == f"scripted:{tmp_path}/[secret:DOOR_TOKEN].json"
    assert KEY.encode() not in (tmp_path / "runs.db").read_bytes()


def test_a_machine_with_a_secret_in_its_name_gives_no_run_its_id() -> None:
    machine = replace(asking("clerk", "Go on, {to}"), name=f"open {KEY}")
    with pytest.raises(Refused, match=r"the run id open-\[secret:DOOR_TOKEN\] has a secret in it; choose another"):
        run(machine, "x")
    assert run(machine, "x", run_id="mine").status == "done"


def test_a_key_of_the_settings_file_is_a_secret_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path))
    (tmp_path / "settings.toml").write_text('[addresses."http://127.0.0.1:1/v1"]\nkey = "hush-hush-1"\n')
    assert cleaner()("it is hush-hush-1.") == "it is [secret:key of http://127.0.0.1:1/v1]."


def test_a_fork_knows_what_its_origin_did_also_where_a_template_holds_a_secret() -> None:
    prompts: list[str] = []

    async def clerk(prompt: str) -> str:
        prompts.append(prompt)
        return "done"

    machine = Machine(
        "clerk",
        data=Note,
        states=[
            State("waiting", enter=question("Now?")),
            State("asking", enter=ask(clerk, f"{KEY} {{to}}")),
            Final("over"),
        ],
        moves=[On("waiting", Answered, to="asking"), On("asking", Replied, to="over")],
    )
    run(machine, "Ada", run_id="first")
    assert answer("first", True, machine).status == "done"
    assert fork("first", machine, at=0, run_id="second").status == "waiting"
    asked = answer("second", True, machine)
    assert (asked.status, len(prompts)) == ("waiting", 1)
    assert asked.questions[0].prompt.startswith("run first did the same after entry 0")
    assert answer("second", {"outcome": "again"}, machine).status == "done"
    assert prompts == ["[secret:DOOR_TOKEN] Ada"] * 2
