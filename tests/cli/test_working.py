"""Commands around runs at work: `worker`, `watch`, `cancel`, `prune`, `export`, and runs that cannot go on."""

import io
import json
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.app.listening import WRITES_DOWN, command
from tests.cli.machines import MACHINES
from tests.cli.process import moot as moot_process
from tests.cli.process import started
from tests.cli.ran import Moot, Ran
from tests.faults.place import SOON, row_of, wait_for

pytestmark = pytest.mark.slow

MORE = """
import asyncio, os
from moothall import Alarm, Cancelled, Expired, GaveUp
from pathlib import Path

async def slow(prompt: str) -> str:
    with Path("calls.log").open("a") as log:
        log.write(prompt + "\\n")
    while not Path("go").exists():
        await asyncio.sleep(0.02)
    return prompt.upper()

SLOW = Machine("slow", data=Letter, result=result,
    states=[State("writing", enter=ask(slow, "Dear {to}")), Final("written")],
    moves=[On("writing", Replied, to="written", do=keep)])

HURRIED = Machine("hurried", data=Letter, result=result,
    states=[State("asking", enter=question("Well?", within=0.3)), Final("answered"), Final("late")],
    moves=[On("asking", Answered, to="answered"), On("asking", Expired, to="late")])

CAREFUL = Machine("careful", data=Letter, result=result,
    states=[State("asking", enter=question("Well?")), State("tidying", enter=ask(clerk, "Tidy up")), Final("over")],
    moves=[On("asking", Answered, to="over"), On("asking", Cancelled, to="tidying"),
           On("tidying", Replied, to="over", do=keep)])

NAPPING = Machine("napping", data=Letter, result=result,
    states=[State("writing", enter=ask(slow, "Dear {to}")), State("napping", enter=Alarm(Expired(), 3600)),
            Final("awake")],
    moves=[On("writing", Replied, to="napping", do=keep), On("napping", Expired, to="awake")])

ASKING = Machine("asking", data=Letter, result=result,
    states=[State("writing", enter=ask(slow, "Dear {to}")), State("asking", enter=question("Send {text}?")),
            Final("over")],
    moves=[On("writing", Replied, to="asking", do=keep), On("asking", Answered, to="over")])

DEAF = Machine("deaf", data=Letter, result=result,
    states=[State("writing", enter=ask(clerk, "Dear {to}")), Final("written")],
    moves=[On("writing", Replied, to="written", when=lambda letter, reply: False)])
"""


@pytest.fixture
def place(moot: Moot, tmp_path: Path) -> Path:
    """The folder with all machines, which is also where runs live for processes that are started in it."""
    (tmp_path / "machines.py").write_text(MACHINES + MORE)
    return tmp_path


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    """The processes of a test, ended after it by what was started."""
    begun: list[subprocess.Popen[str]] = []
    yield begun
    for process in begun:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=SOON)


@pytest.fixture
def start(place: Path, processes: list[subprocess.Popen[str]]) -> Callable[..., subprocess.Popen[str]]:
    def begin(*arguments: str) -> subprocess.Popen[str]:
        processes.append(started(*arguments, home=place))
        return processes[-1]

    return begin


@pytest.fixture
def here(place: Path, moot: Moot, monkeypatch: pytest.MonkeyPatch) -> Moot:
    """`moot` in this process, on the same store as the processes that a test starts."""
    monkeypatch.setenv("MOOTHALL_HOME", str(place))
    return moot


Start = Callable[..., subprocess.Popen[str]]


def row(place: Path, run: str = "mine") -> dict[str, Any]:
    """A run as the file has it."""
    return row_of(place / "moothall.db", run)


def change(place: Path, statement: str) -> None:
    with closing(sqlite3.connect(place / "moothall.db", timeout=SOON)) as db, db:
        db.execute(statement)
    db.close()


def under_way(place: Path, calls: int = 1) -> None:
    """Come back when the slow agent was called so often."""
    log = place / "calls.log"
    wait_for(lambda: log.exists() and len(log.read_text().splitlines()) >= calls, "the call")


def ended(process: subprocess.Popen[str], number: int | None = None) -> Ran:
    if number is not None:
        process.send_signal(number)
    out, err = process.communicate(timeout=SOON)
    return Ran(process.returncode, out, err)


def left_by_another(place: Path, start: Start, machine: str, run: str, calls: int) -> None:
    """A run that a process began and left in the middle of its call, which is the so manyth of all."""
    begun = start("run", f"machines.py:{machine}", "Ada", "--run-id", run)
    under_way(place, calls)
    ended(begun, signal.SIGINT)


# worker


def test_a_worker_goes_on_with_what_a_killed_process_left_and_ends_what_is_overdue(
    place: Path, start: Start, here: Moot
) -> None:
    killed = start("run", "machines.py:SLOW", "Ada", "--run-id", "mine")
    under_way(place)
    ended(killed, signal.SIGKILL)
    assert here("run", "machines.py:HURRIED", "Eve", "--run-id", "hurried").code == 5
    (place / "go").touch()
    worker = start("worker")
    wait_for(lambda: {row(place, run).get("status") for run in ("mine", "hurried")} == {"done"}, "the end of both runs")
    ran = ended(worker, signal.SIGTERM)
    assert ran.code == 0
    store = f"sqlite:{place / 'moothall.db'}"
    assert ran.err.startswith(f"working on {store}, at most 100 runs at once; Ctrl-C stops cleanly\n")
    assert ran.err.endswith("stopped; no run was under way\n")
    assert "mine 1  writing → written" in ran.err
    assert here("show", "hurried", "--json").json["summary"]["states"] == ["late"]
    assert (place / "calls.log").read_text() == "Dear Ada\n" * 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_a_worker_that_is_stopped_says_how_many_runs_it_let_go_of(
    place: Path, start: Start, here: Moot, number: signal.Signals
) -> None:
    for calls, run in enumerate(("mine", "yours"), 1):
        left_by_another(place, start, "SLOW", run, calls)
    worker = start("worker", "--most", "7")
    under_way(place, 4)
    ran = ended(worker, number)
    assert (ran.code, ran.out) == (0, "")
    assert ", at most 7 runs at once; Ctrl-C stops cleanly\n" in ran.err
    assert ran.err.endswith("stopped; let go of 2 runs, to go on elsewhere or later\n")
    assert [row(place, run)["owner"] for run in ("mine", "yours")] == [None, None]


def test_a_worker_that_drains_ends_when_what_is_under_way_has_come_to_rest(
    place: Path, start: Start, here: Moot
) -> None:
    left_by_another(place, start, "SLOW", "mine", 1)
    worker = start("worker", "--drain", "60")
    under_way(place, 2)
    worker.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        worker.wait(1)
    (place / "go").touch()
    ran = ended(worker)
    assert (ran.code, row(place)["status"]) == (0, "done")
    assert ran.err.endswith("stopped; no run was under way\n")
    assert (place / "calls.log").read_text() == "Dear Ada\n" * 2


def test_a_worker_with_nothing_to_do_ends_where_it_is_to_be_idle(here: Moot, place: Path) -> None:
    here("run", "machines.py:SENT", "Ada", "--run-id", "mine")
    ran = here("worker", "--until-idle")
    assert (ran.code, ran.out) == (0, "")
    assert "; until nothing is left to do\n" in ran.err
    assert ran.err.endswith("stopped; no run was under way\n")


def test_a_worker_until_idle_does_all_that_is_due_and_ends(place: Path, start: Start, here: Moot) -> None:
    for calls, run in enumerate(("mine", "yours"), 1):
        left_by_another(place, start, "SLOW", run, calls)
    (place / "go").touch()
    assert here("worker", "--until-idle", "--most", "1").code == 0
    assert [row(place, run)["status"] for run in ("mine", "yours")] == ["done", "done"]


def test_a_worker_until_idle_waits_for_what_it_performs(place: Path, start: Start, here: Moot) -> None:
    left_by_another(place, start, "SLOW", "mine", 1)
    worker = start("worker", "--until-idle", "--quiet")
    under_way(place, 2)
    with pytest.raises(subprocess.TimeoutExpired):
        worker.wait(2)
    (place / "go").touch()
    assert ended(worker).code == 0
    assert row(place)["status"] == "done"


def test_a_worker_until_idle_is_not_kept_by_a_run_that_waits_for_a_later_time(
    place: Path, start: Start, here: Moot
) -> None:
    left_by_another(place, start, "NAPPING", "mine", 1)
    (place / "go").touch()
    ran = here("worker", "--until-idle")
    assert ran.err.endswith("stopped; let go of 1 run, to go on elsewhere or later\n")
    assert (row(place)["owner"], row(place)["status"]) == (None, "live")
    assert here("show", "mine", "--json").json["summary"]["states"] == ["napping"]


def test_a_worker_until_idle_is_not_kept_by_a_run_that_it_cannot_open(place: Path, start: Start, here: Moot) -> None:
    left_by_another(place, start, "SLOW", "mine", 1)
    text = (place / "machines.py").read_text()
    (place / "machines.py").write_text(text.replace('Machine("slow"', 'Machine("sluggish"'))
    ran = ended(start("worker", "--until-idle"))
    assert ran.code == 0
    assert "run mine is left alone for now" in ran.err


QUITTING = """
import asyncio, sys
from moothall import Final, Machine, On, Replied, State, ask

async def quit_in_a_task():
    sys.exit(0)

async def quitter(prompt: str) -> str:
    await asyncio.gather(quit_in_a_task())

QUITTING = Machine("quitting", states=[State("writing", enter=ask(quitter, "Write")), Final("written")],
    moves=[On("writing", Replied, to="written")])
"""


def test_a_run_that_ends_its_worker_has_no_say_in_the_exit_code(place: Path, start: Start) -> None:
    (place / "quitting.py").write_text(QUITTING)
    for arguments in (("run", "quitting.py"), ("worker",)):
        ran = ended(start(*arguments))
        assert ran.code == 1
        assert ran.err.endswith(f"moot {arguments[0]}: something in a run ended the program (SystemExit: 0)\n")


def test_a_worker_until_idle_can_be_stopped_before(place: Path, start: Start, here: Moot) -> None:
    left_by_another(place, start, "SLOW", "mine", 1)
    worker = start("worker", "--until-idle")
    under_way(place, 2)
    assert ended(worker, signal.SIGTERM).err.endswith("stopped; let go of 1 run, to go on elsewhere or later\n")


def test_a_worker_tells_of_the_questions_that_its_runs_ask(place: Path, start: Start, here: Moot) -> None:
    left_by_another(place, start, "ASKING", "mine", 1)
    (place / "go").touch()
    hook = command(place, WRITES_DOWN, str(place / "told"))
    assert here("worker", "--until-idle", "--quiet", "--on-wait", hook).code == 0
    told = json.loads((place / "told").read_text())
    assert (told["run"], told["machine"], told["questions"][0]["prompt"]) == ("mine", "asking", "Send DEAR ADA?")


def test_a_worker_logs_what_its_runs_do(place: Path, start: Start, here: Moot) -> None:
    left_by_another(place, start, "SLOW", "mine", 1)
    (place / "go").touch()
    assert here("worker", "--until-idle", "--quiet", "--telemetry", f"log:{place / 'log'}").code == 0
    told = [json.loads(line) for line in (place / "log").read_text().splitlines()]
    assert (told[-1]["run"], told[-1]["event"], told[-1]["status"]) == ("mine", "replied", "done")
    assert told[-1]["effect"] == "0.0"


def test_a_worker_that_is_stopped_lets_go_and_the_next_one_goes_on_at_once(
    place: Path, start: Start, here: Moot
) -> None:
    first = start("run", "machines.py:SLOW", "Ada", "--run-id", "mine")
    under_way(place)
    ended(first, signal.SIGINT)
    assert row(place)["owner"] is None
    worker = start("worker", "--quiet")
    under_way(place, 2)
    assert row(place)["owner"].split(":")[1] == str(worker.pid)
    assert (ended(worker, signal.SIGINT).code, row(place)["owner"]) == (0, None)
    (place / "go").touch()
    assert here("resume", "mine", "--json").json["status"] == "done"


def test_a_worker_says_which_run_it_cannot_open_and_drives_the_others(place: Path, start: Start, here: Moot) -> None:
    first = start("run", "machines.py:SLOW", "Ada", "--run-id", "mine")
    under_way(place)
    ended(first, signal.SIGINT)
    here("run", "machines.py:HURRIED", "Eve", "--run-id", "hurried")
    text = (place / "machines.py").read_text()
    (place / "machines.py").write_text(text.replace('Machine("slow"', 'Machine("sluggish"'))
    worker = start("worker")
    wait_for(lambda: row(place, "hurried")["status"] == "done", "the end of the good run")
    ran = ended(worker, signal.SIGINT)
    assert "run mine is left alone for now: run mine is of the machine 'slow', not of 'sluggish'" in ran.err
    assert row(place)["status"] == "live"


def test_a_run_that_another_process_drives_is_refused_by_name(place: Path, start: Start, here: Moot) -> None:
    driving = start("run", "machines.py:SLOW", "Ada", "--run-id", "mine")
    under_way(place)
    ran = here("resume", "mine")
    assert ran.code == 9
    assert "run mine is being driven by" in ran.err
    assert f":{driving.pid}:" in ran.err
    (place / "go").touch()
    assert ended(driving).code == 0
    assert (place / "calls.log").read_text() == "Dear Ada\n"


# watch


def test_watch_follows_a_run_to_its_end(place: Path, start: Start) -> None:
    driving = start("run", "machines.py:SLOW", "Ada", "--run-id", "mine")
    under_way(place)
    watching = start("watch", "mine", "--json")
    assert watching.stdout is not None
    assert json.loads(watching.stdout.readline())["seq"] == 0
    (place / "go").touch()
    ran = ended(watching)
    assert (ran.code, json.loads(ran.out)["seq"], json.loads(ran.out)["status"]) == (0, 1, "done")
    assert ended(driving).code == 0


def test_watch_begins_where_it_is_told(here: Moot, place: Path) -> None:
    here("run", "machines.py:SENT", "Ada", "--run-id", "mine")
    here("answer", "mine", "--yes")
    whole = here("watch", "mine", "--json")
    assert whole.code == 0
    lines = whole.out.splitlines()
    assert [json.loads(line)["seq"] for line in lines] == [0, 1, 2]
    assert here("watch", "mine", "--json", "--from", "0").out.splitlines() == lines
    assert here("watch", "mine", "--json", "--from", "1").out.splitlines() == lines[1:]
    nothing_new = here("watch", "mine", "--from", "3")
    assert (nothing_new.code, nothing_new.out) == (0, "")


def test_watch_says_at_the_end_how_the_run_ended(here: Moot, place: Path) -> None:
    here("run", "machines.py:LETTER", "Ada", "--run-id", "mine", "--budget", "calls=5")
    ran = here("watch", "mine")
    assert len(ran.out.splitlines()) == 2
    assert ran.err.startswith("mine is done (in written, step 1, ")
    assert ran.err.endswith("; spent: calls 1 of 5)\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
@pytest.mark.parametrize("as_json", [(), ("--json",)], ids=["for people", "as json"])
def test_watch_that_is_stopped_says_how_to_go_on_and_that_works(
    place: Path, start: Start, here: Moot, number: signal.Signals, as_json: tuple[str, ...]
) -> None:
    here("run", "machines.py:SENT", "Ada", "--run-id", "mine")
    watching = start("watch", "mine", *as_json)
    assert watching.stdout is not None
    for _ in range(2):
        assert watching.stdout.readline()
    ran = ended(watching, number)
    assert (ran.code, ran.out) == (1, "")
    go_on = " ".join(("moot watch mine --from 2", *as_json))
    assert ran.err == f"stopped; the run is as it was. Go on with:  {go_on}\n"
    here("answer", "mine", "--yes")
    rest = moot_process(*shlex.split(go_on)[1:], home=place)
    assert (rest.returncode, len(rest.stdout.splitlines())) == (0, 1)


def test_watch_ends_when_nobody_reads_it_any_more_although_the_run_waits(start: Start, here: Moot) -> None:
    here("run", "machines.py:SENT", "Ada", "--run-id", "mine")
    watching = start("watch", "mine")
    assert watching.stdout is not None
    assert watching.stderr is not None
    assert watching.stdout.readline()
    watching.stdout.close()
    assert (watching.stderr.read(), watching.wait(SOON)) == ("", 0)


def test_watch_of_a_run_that_failed_exits_with_1(here: Moot, place: Path) -> None:
    here("run", "machines.py:STOLEN", "Ada", "--run-id", "mine")
    ran = here("watch", "mine")
    assert ran.code == 1
    assert "the ink is dry" in ran.out


# cancel


def test_cancel_stops_a_run_that_another_process_drives_within_two_seconds(
    place: Path, start: Start, here: Moot
) -> None:
    driving = start("run", "machines.py:SLOW", "Ada", "--run-id", "mine")
    under_way(place)
    before = time.monotonic()
    ran = here("cancel", "mine", "--reason", "enough", "--json")
    assert (ran.code, ran.json["status"]) == (0, "cancelled")
    stopped = ended(driving)
    assert time.monotonic() - before < 2.5
    assert stopped.code == 8
    assert "mine is cancelled: enough" in stopped.err
    assert row(place)["owner"] is None
    assert (place / "calls.log").read_text() == "Dear Ada\n"


def test_a_run_that_is_over_is_not_cancelled(here: Moot, place: Path) -> None:
    here("run", "machines.py:LETTER", "Ada", "--run-id", "mine")
    ran = here("cancel", "mine")
    assert (ran.code, ran.err) == (1, "moot cancel: run mine is done already\n")


def test_a_cancel_that_the_machine_takes_in_its_own_way_leaves_the_rest_to_whoever_comes(
    here: Moot, place: Path
) -> None:
    assert here("run", "machines.py:CAREFUL", "Ada", "--run-id", "mine").code == 5
    assert here("cancel", "mine", "--json").json["status"] == "running"
    assert (row(place)["owner"], row(place)["crashes"]) == (None, 0)
    ran = here("resume", "mine", "--json")
    assert (ran.json["status"], ran.json["states"], ran.json["result"]) == ("done", ["over"], "TIDY UP")


# prune and export


def test_prune_lists_what_it_would_delete_deletes_with_yes_and_keeps_the_young(here: Moot, place: Path) -> None:
    for run in ("done-1", "done-2"):
        here("run", "machines.py:LETTER", "Ada", "--run-id", run)
    here("run", "machines.py:SENT", "Ada", "--run-id", "waiting")
    young = here("prune", "--days", "1", "--yes")
    assert (young.code, young.out, young.err) == (0, "", "no run ended more than 1 day ago\n")
    listed = here("prune", "--days", "0")
    assert sorted(listed.out.split()) == ["done-1", "done-2"]
    assert listed.err == "2 runs would be deleted; say --yes\n"
    assert len(here("ls", "--json").json) == 3
    assert here("prune", "--days", "0", "--yes", "--json").json == {"runs": ["done-2", "done-1"], "deleted": True}
    assert [one["run"] for one in here("ls", "--json").json] == ["waiting"]
    assert here("show", "done-1").code == 1
    assert row(place, "done-1") == {}


def test_prune_tells_the_old_from_the_young(here: Moot, place: Path) -> None:
    now = time.time
    with pytest.MonkeyPatch.context() as earlier:
        earlier.setattr(time, "time", lambda: now() - 31 * 86_400)
        here("run", "machines.py:LETTER", "Ada", "--run-id", "old")
    here("run", "machines.py:LETTER", "Ada", "--run-id", "young")
    assert here("prune").out.split() == ["old"]
    assert here("prune", "--days", "32").out == ""


def test_export_is_json_with_record_head_and_entries(here: Moot, place: Path) -> None:
    here("run", "machines.py:LETTER", "Ada", "--run-id", "mine")
    exported = here("export", "mine").json
    assert exported["record"]["run"] == "mine"
    assert exported["record"]["machine"] == "letter"
    assert exported["status"] == exported["head"]["snapshot"]["status"] == "done"
    assert exported["head"]["snapshot"]["data"]["text"] == "DEAR ADA"
    assert [entry["seq"] for entry in exported["entries"]] == [0, 1]
    written = here("export", "mine", "--output", "mine.json")
    assert (written.code, written.out) == (0, "")
    assert json.loads((place / "mine.json").read_text()) == exported


# what a run says


def test_an_endless_machine_is_refused_without_a_budget_and_allowed_with_one(here: Moot, place: Path) -> None:
    ran = here("run", "machines.py:ENDLESS", "Ada", "--run-id", "mine")
    assert (ran.code, ran.out) == (4, "")
    assert "machine endless may never end" in ran.err
    assert "or give the run a budget" in ran.err
    assert row(place) == {}
    limited = here("run", "machines.py:ENDLESS", "Ada", "--run-id", "mine", "--budget", "calls=4", "--json")
    assert (limited.code, limited.json["status"], limited.json["spent"]["calls"]) == (7, "limited", 4)


def test_a_stuck_run_says_so_and_exits_with_1(here: Moot, place: Path) -> None:
    ran = here("run", "machines.py:DEAF", "Ada", "--run-id", "mine")
    assert ran.code == 1
    assert "mine is stuck: nothing is under way in writing, and no row took what happened last" in ran.err
    assert "add On('writing', otherwise, …)" in ran.err
    assert here("ls", "--json").json[0]["status"] == "stuck"


def test_quiet_still_tells_why_a_run_failed(here: Moot, place: Path) -> None:
    ran = here("run", "machines.py:STOLEN", "Ada", "--run-id", "mine", "--quiet")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("mine is failed: ")
    assert "the ink is dry" in ran.err
    assert len(ran.err.splitlines()) == 1


def test_quiet_says_nothing_where_all_is_well(here: Moot, place: Path) -> None:
    ran = here("run", "machines.py:LETTER", "Ada", "--quiet")
    assert (ran.code, ran.out, ran.err) == (0, "DEAR ADA\n", "")


def test_an_answer_is_read_from_stdin(here: Moot, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here("run", "machines.py:PAINTED", "Ada", "--run-id", "mine")
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"colour": "green"}'))
    ran = here("answer", "mine", "--json", "-", "--json")
    assert (ran.code, ran.json["data"]["text"]) == (0, "green")


def test_no_json_on_stdin_is_refused_and_the_question_stays_open(
    here: Moot, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here("run", "machines.py:PAINTED", "Ada", "--run-id", "mine")
    monkeypatch.setattr(sys, "stdin", io.StringIO("green"))
    ran = here("answer", "mine", "--json", "-")
    assert (ran.code, ran.err.startswith("moot answer: - is not JSON")) == (1, True)
    assert here("ls", "--json").json[0]["status"] == "waiting"


def test_an_answer_to_a_run_that_a_worker_drives_is_kept_and_goes_on_there(
    place: Path, start: Start, here: Moot
) -> None:
    worker = start("worker")
    assert worker.stderr is not None
    assert worker.stderr.readline().startswith("working on ")
    here("run", "machines.py:SENT", "Ada", "--run-id", "mine")
    assert moot_process("answer", "mine", "--yes", home=place).returncode == 0
    assert ended(worker, signal.SIGINT).code == 0
    assert here("show", "mine", "--json").json["summary"]["states"] == ["posted"]
