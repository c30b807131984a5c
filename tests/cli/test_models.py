"""Models of providers at the command line: exit code 3 where they fail, and what they say while they say it."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from moothall.app.config.models import PROVIDERS
from tests.cli.process import moot
from tests.cli.ran import Moot
from tests.cli.terminal import terminal
from tests.models.loopback import Fault, Said, loopback_aside


def test_a_run_asks_a_model_by_its_address(place: Path) -> None:
    with loopback_aside(Said("Dear Ada, the sea rises.")) as served:
        model = f"openai:m@{served.address}"
        ran = moot("run", "machines.py:NAMED", "Ada", "--model", model, "--budget", "usd=1", home=place)
    assert (ran.returncode, ran.stdout) == (0, "Dear Ada, the sea rises.\n")
    assert f"the price of {model} is not known: what it costs does not count towards the budget" in ran.stderr
    assert "tokens 18" in ran.stderr


def test_a_prompt_for_an_address_without_a_scheme_does_not_go_to_the_provider_instead(place: Path) -> None:
    with loopback_aside(Said("Dear Ada.")) as provider:
        keyed = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": provider.address}
        model = "openai:smollm2@127.0.0.1:8081/v1"
        ran = moot("run", "machines.py:NAMED", "Ada", "--model", model, home=place, more=keyed)
        assert not provider.asked
    assert ran.returncode == 4
    assert "write openai:smollm2@http://127.0.0.1:8081/v1" in ran.stderr


def test_a_provider_that_refuses_exits_with_3_and_says_what_to_do(place: Path) -> None:
    with loopback_aside(Fault(401, b'{"error": {"message": "who are you"}}')) as served:
        ran = moot("run", "machines.py:NAMED", "Ada", "--model", f"openai:m@{served.address}", home=place)
    assert ran.returncode == 3
    assert "wants a key, and none is bound to it; bind one in settings.toml (401): who are you" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.slow
def test_a_provider_that_fails_three_times_exits_with_3(place: Path) -> None:
    with loopback_aside(Fault(503, b'{"error": {"message": "busy"}}')) as served:
        ran = moot("run", "machines.py:NAMED", "Ada", "--json", "--model", f"openai:m@{served.address}", home=place)
        assert len(served.asked) == 3
    assert ran.returncode == 3
    assert '"fault": "provider"' in ran.stdout


def test_a_model_without_a_key_exits_with_4_before_the_run_begins(place: Path) -> None:
    ran = moot("run", "machines.py:NAMED", "Ada", "--model", "openai:m", home=place, more={"OPENAI_API_KEY": ""})
    assert (ran.returncode, ran.stderr) == (4, "moot run: openai:m needs a key: set OPENAI_API_KEY\n")
    assert moot("ls", home=place).stdout == "no runs yet\n"


def test_an_agent_of_ones_own_that_fails_still_exits_with_1(place: Path) -> None:
    assert moot("run", "machines.py:STOLEN", "Ada", home=place).returncode == 1


@pytest.mark.slow
def test_at_a_terminal_the_reply_is_seen_while_it_comes(place: Path) -> None:
    with loopback_aside(Said("The sea rises and falls.")) as served:
        model = f"openai:m@{served.address}"
        with terminal("run", "machines.py:NAMED", "Ada", "--model", model, home=place) as screen:
            said = screen.read_all()
        assert served.asked[0].body["stream"] is True
    assert re.search(r"poet \(\d+ s\): …The sea rise", said)
    assert "The sea rises and falls.\r\n" in said


def test_a_provider_whose_library_is_missing_is_refused_before_the_run_begins(
    moot: Moot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moothall.app.config.models.LIBRARY", "moothall_library_that_is_not_there")
    ran = moot("run", "machines.py:NAMED", "Ada", "--model", "openai:gpt@http://127.0.0.1:9/v1")
    assert ran.code == 4
    assert "pip install 'moothall[models]'" in ran.err
    assert moot("ls", "--json").json == []


INSTALL = "models of providers need more than is installed: pip install 'moothall[models]'"
HERE, ELSEWHERE = "openai:m@http://127.0.0.1:9", "anthropic:m@http://127.0.0.1:9"


@pytest.fixture
def without_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which one provider's own library is not installed."""
    missing = replace(PROVIDERS["anthropic"], library="moothall_package_that_is_not_there.sdk")
    monkeypatch.setitem(PROVIDERS, "anthropic", missing)


@pytest.mark.usefixtures("without_sdk")
@pytest.mark.parametrize(
    "command",
    [
        ("run", "machines.py:NAMED", "Ada"),
        ("run", "machines.py:NAMED", "Ada", "--detach"),
        ("run", "coder_reviewer", "tea"),
        ("pipeline", "a boat"),
        ("debate", "Where do we keep sales?"),
        ("arena", "tidy up", "--workspace", "work"),
        ("team", "--script", "typed.txt"),
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_no_run_of_any_kind_begins_where_its_provider_s_own_library_is_missing(
    moot: Moot, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "typed.txt").write_text("Hi\n")
    ran = moot(*command, "--model", ELSEWHERE)
    assert (ran.code, INSTALL in ran.err) == (4, True), ran.err
    assert moot("ls", "--all", "--json").json == []


OWN = """
from moothall import Final, Machine, On, Replied, State, ask

OWN = Machine("own", states=[State("writing", enter=ask("poet", "Write.", model="{model}")), Final("written")],
              moves=[On("writing", Replied, to="written")])
"""


@pytest.mark.usefixtures("without_sdk")
@pytest.mark.parametrize("kind", ["python", "debate", "team", "arena"])
def test_models_that_agents_name_themselves_are_looked_for_before_a_run_begins(
    moot: Moot, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "typed.txt").write_text("Hi\n")
    (tmp_path / "own.py").write_text(OWN.format(model=ELSEWHERE))
    seats = [{"id": "architect", "role": "architect"}, {"id": "kiss", "role": "kiss", "model": ELSEWHERE}]
    (tmp_path / "debate.json").write_text(json.dumps({"agents": seats}))
    (tmp_path / "arena.json").write_text(json.dumps({"agents": {"security": {"model": ELSEWHERE}}}))
    moot("new", "team", "mine")
    team = json.loads((tmp_path / "mine.json").read_text())
    team["personas"][0]["model"] = ELSEWHERE
    (tmp_path / "mine.json").write_text(json.dumps(team))
    command = {
        "python": ("run", "own.py:OWN"),
        "debate": ("debate", "Where do we keep sales?", "-c", "debate.json"),
        "team": ("team", "-c", "mine.json", "--script", "typed.txt"),
        "arena": ("arena", "tidy up", "-c", "arena.json", "--workspace", "work"),
    }[kind]
    ran = moot(*command, "--model", HERE)
    assert (ran.code, INSTALL in ran.err) == (4, True), ran.err
    assert moot("ls", "--all", "--json").json == []


def test_a_worker_leaves_a_run_alone_whose_provider_s_library_it_does_not_have(
    moot: Moot, request: pytest.FixtureRequest
) -> None:
    assert moot("run", "coder_reviewer", "tea", "--run-id", "mine", "--detach", "--model", ELSEWHERE).code == 0
    request.getfixturevalue("without_sdk")
    worked = moot("worker", "--until-idle")
    assert f"run mine is left alone for now: {INSTALL}" in worked.err
    shown = moot("show", "mine", "--json").json
    assert (shown["summary"]["status"], len(shown["entries"])) == ("running", 1)


def test_a_workflow_without_a_key_for_its_model_does_not_begin(moot: Moot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    ran = moot("run", "coder_reviewer", "tea", "--model", "openai:m")
    assert (ran.code, ran.err) == (4, "moot run: openai:m needs a key: set OPENAI_API_KEY\n")
    assert moot("ls", "--all", "--json").json == []


def test_a_run_can_be_cancelled_whose_script_is_gone(moot: Moot, tmp_path: Path) -> None:
    (tmp_path / "said.json").write_text('{"writer": ["Dear Ada"]}')
    words = ("run", "machines.py:NAMED", "Ada", "--model", "scripted:said.json", "--run-id", "mine", "--detach")
    assert moot(*words).code == 0
    (tmp_path / "said.json").unlink()
    assert moot("resume", "mine").code == 4
    assert moot("cancel", "mine").code == 0
    assert moot("ls", "--json", "--all").json[0]["status"] == "cancelled"
