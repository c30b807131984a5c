"""The doctor says what is well, what is worth knowing and what is wrong, and changes nothing."""

import os
import shutil
import socket
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from moothall import Answered, DefinitionError, Final, Machine, On, State, question, run
from moothall.app.config import doctor
from moothall.app.config import store as storefile
from moothall.app.config.doctor import Check, examine, filesystem, has_reset_bug, holding, sharing, sqlite
from moothall.app.config.store import filesystem_of, look_at, others_at
from moothall.runtime.ports import Lease
from moothall.sandboxes import bubblewrap
from tests.runtime.world import HERE

HOST = socket.gethostname()
ASKING = Machine(
    "asking",
    states=[State("asking", enter=question("Well?")), Final("over")],
    moves=[On("asking", Answered, to="over")],
)
OVER = Machine("over", states=[Final("over")], moves=[])


@pytest.fixture
def used_file(file: Path) -> Path:
    """The file of a store with a run that waits and two that are done."""
    run(ASKING, run_id="waiting", store=f"sqlite:{file}")
    for name in ("one", "two"):
        run(OVER, run_id=name, store=f"sqlite:{file}")
    return file


def change(file: Path, *statements: str) -> None:
    db = sqlite3.connect(file)
    for statement in statements:
        db.execute(statement)
    db.commit()
    db.close()


def found(file: Path) -> dict[str, Check]:
    """What the doctor says of a store, by name."""
    return {check.name: check for check in examine(f"sqlite:{file}")}


def said(check: Check) -> tuple[str, str]:
    return check.level, check.says


# SQLite


@pytest.mark.parametrize(
    ("number", "bad"),
    [
        ((3, 6, 23), False),
        ((3, 7, 0), True),
        ((3, 40, 1), True),
        ((3, 44, 5), True),
        ((3, 44, 6), False),
        ((3, 45, 0), True),
        ((3, 50, 6), True),
        ((3, 50, 7), False),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((3, 52, 0), False),
        ((4, 0, 0), False),
    ],
)
def test_versions_with_the_reset_bug_are_known(number: tuple[int, int, int], bad: bool) -> None:
    assert has_reset_bug(number) is bad
    assert sqlite(number).level == ("warning" if bad else "ok")


# where the store lies


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    place = tmp_path / "folder" / "runs.db"
    checks = found(place)
    assert said(checks["store"]) == ("ok", f"sqlite:{place}: it is not there yet; the first run makes it")
    assert list(tmp_path.iterdir()) == []
    assert "runs" not in checks


def test_looking_leaves_every_byte_and_every_file_as_it_was(used_file: Path) -> None:
    before = {one.name: one.read_bytes() for one in used_file.parent.rglob("*") if one.is_file()}
    assert found(used_file)["runs"].level == "ok"
    assert {one.name: one.read_bytes() for one in used_file.parent.rglob("*") if one.is_file()} == before


def test_a_good_store_has_its_size_its_log_and_its_runs_by_status(used_file: Path) -> None:
    checks = found(used_file)
    assert checks["store"].level == "ok"
    assert checks["store"].says.startswith(f"sqlite:{used_file}: ")
    assert checks["store"].says.endswith(" kB, can be written")
    assert said(checks["log"]) == ("ok", "the write-ahead log is on")
    assert said(checks["runs"]) == ("ok", "2 done, 1 waiting")
    assert checks["disk"].says.endswith(" GB free")


@pytest.mark.parametrize(
    ("statements", "level", "says"),
    [
        ((), "ok", "an empty file; the first run makes a store of it"),
        (("CREATE TABLE diary (day)",), "problem", "it is the database of another program, or of an older Moothall"),
    ],
    ids=["empty", "of another program"],
)
def test_a_file_that_is_no_store_is_told_and_left_alone(
    file: Path, statements: tuple[str, ...], level: str, says: str
) -> None:
    file.touch()
    change(file, *statements)
    before = file.read_bytes()
    assert said(found(file)["store"]) == (level, f"sqlite:{file}: {says}")
    assert file.read_bytes() == before


def test_a_file_that_is_no_database_is_a_problem(file: Path) -> None:
    file.write_text("dear diary " * 99)
    level, says = said(found(file)["store"])
    assert (level, says.endswith("it cannot be opened: file is not a database")) == ("problem", True)


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    assert look_at(tmp_path).level == "problem"


def test_a_store_cannot_be_made_below_a_file(file: Path) -> None:
    file.touch()
    assert said(found(file / "runs.db")["store"])[0] == "problem"


@pytest.mark.parametrize(("version", "level", "says"), [(99, "problem", "newer"), (0, "warning", "older")])
def test_a_store_of_another_moothall_is_told_and_not_changed(
    used_file: Path, version: int, level: str, says: str
) -> None:
    change(used_file, f"PRAGMA user_version = {version}")
    check = found(used_file)["store"]
    assert (check.level, says in check.says) == (level, True)
    db = sqlite3.connect(used_file)
    assert db.execute("PRAGMA user_version").fetchone() == (version,)
    db.close()


def test_a_store_without_its_log_is_worth_knowing_and_stays_so(used_file: Path) -> None:
    change(used_file, "PRAGMA journal_mode = DELETE")
    checks = found(used_file)
    assert checks["log"].level == "warning"
    assert "runs" not in checks
    db = sqlite3.connect(used_file)
    assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    db.close()


def test_a_store_that_somebody_writes_to_right_now_can_be_written(used_file: Path) -> None:
    db = sqlite3.connect(used_file, isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    try:
        assert look_at(used_file).level == "ok"
    finally:
        db.close()


def test_a_store_that_may_not_be_written_is_a_problem(used_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere
    assert "no permission" in found(used_file)["store"].says


def test_what_is_no_address_is_refused() -> None:
    with pytest.raises(DefinitionError, match="'postgres:x' is not a store"):
        examine("postgres:x")


def test_a_store_in_memory_has_no_file_to_look_at() -> None:
    checks = {check.name: check for check in examine("memory")}
    assert checks["store"].level == "ok"
    assert "disk" not in checks


MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
tmpfs /tmp tmpfs rw 0 0
server:/export /mnt/far nfs4 rw 0 0
//server/share /mnt/my\\040share cifs rw 0 0
host /mnt/far/near 9p rw 0 0
me@host: /mnt/ssh fuse.sshfs rw 0 0
/dev/sdb1 /mnt/far/near/nearest xfs rw 0 0
over /mnt/over ext4 rw 0 0
over /mnt/over nfs rw 0 0
strange
"""


@pytest.mark.parametrize(
    ("path", "kind", "level"),
    [
        ("/srv/runs.db", "ext4", "ok"),
        ("/tmp/runs.db", "tmpfs", "ok"),
        ("/tmpfile/runs.db", "ext4", "ok"),
        ("/mnt/far/runs.db", "nfs4", "warning"),
        ("/mnt/farther/runs.db", "ext4", "ok"),
        ("/mnt/my share/runs.db", "cifs", "warning"),
        ("/mnt/far/near/runs.db", "9p", "warning"),
        ("/mnt/far/near/nearest/runs.db", "xfs", "ok"),
        ("/mnt/ssh/runs.db", "fuse.sshfs", "warning"),
        ("/mnt/over/runs.db", "nfs", "warning"),
    ],
)
def test_a_network_filesystem_is_worth_knowing(path: str, kind: str, level: str) -> None:
    assert filesystem_of(Path(path), MOUNTS) == kind
    assert filesystem(kind).level == level


def test_the_table_of_mounts_is_asked_for_the_store(
    used_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mounts").write_text(f"server:/x {tmp_path.resolve()} nfs rw 0 0\n")
    monkeypatch.setattr(storefile, "MOUNTS", tmp_path / "mounts")
    assert found(used_file)["filesystem"].level == "warning"
    monkeypatch.setattr(storefile, "MOUNTS", tmp_path / "none")
    assert "filesystem" not in found(used_file)


@pytest.mark.parametrize(("free", "level"), [(10_000_000, "problem"), (100_000_000, "warning"), (10**12, "ok")])
def test_a_full_disk_is_a_problem(file: Path, free: int, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "free_space", lambda file: free)
    assert found(file)["disk"].level == level


# who holds runs, and who else is there


def lease(holder: str, until: float = 100.0) -> Lease:
    return Lease(f"{holder}:word{HERE}", 1, until)


@pytest.fixture
def dead() -> int:
    """The number of a process that is gone."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


@pytest.mark.parametrize(
    ("holder", "until", "level", "says"),
    [
        (f"{HOST}:{os.getpid()}", 100.0, "ok", "holds 2 runs, and is alive"),
        (f"{HOST}:{os.getpid()}", 50.0, "warning", "was not heard of in time"),
        ("far-away:1", 100.0, "warning", "from another host"),
        ("far-away:1", 50.0, "warning", "was not heard of in time"),
    ],
)
def test_a_holder_is_alive_overdue_or_elsewhere(holder: str, until: float, level: str, says: str) -> None:
    check = holding(holder, [lease(holder, until), lease(holder, until)], 60.0)
    assert (check.level, check.says.startswith(holder), says in check.says) == (level, True, True)


def test_a_holder_that_is_gone_is_told(dead: int) -> None:
    check = holding(f"{HOST}:{dead}", [lease(f"{HOST}:{dead}")], 60.0)
    assert (check.level, "holds 1 run, but is gone" in check.says) == ("warning", True)


def test_the_holders_of_a_store_are_named(used_file: Path, dead: int) -> None:
    change(
        used_file,
        f"UPDATE runs SET owner = '{HOST}:{dead}:word{HERE}', until = {time.time() + 30} WHERE run = 'waiting'",
    )
    assert f"{HOST}:{dead} holds 1 run, but is gone" in found(used_file)["holder"].says


@pytest.fixture
def reader(used_file: Path) -> Iterator[int]:
    """Another process that has the store open."""
    with used_file.open("rb") as opened, subprocess.Popen(["sleep", "3600"], stdin=opened) as process:
        yield process.pid
        process.kill()


def test_other_processes_that_have_the_store_open_are_found(used_file: Path, reader: int) -> None:
    assert others_at(used_file) == {reader}
    assert said(found(used_file)["sharing"]) == ("ok", f"process {reader} has the store open")


def test_a_live_holder_counts_as_one_of_them(used_file: Path, reader: int) -> None:
    change(used_file, f"UPDATE runs SET owner = '{HOST}:1:word', until = {time.time() + 30} WHERE run = 'waiting'")
    check = found(used_file)["sharing"]
    assert check.level == "warning"
    assert check.says.startswith(f"2 processes have the store open (1, {reader})")


def test_a_store_that_nobody_else_has_open_is_not_worth_a_word() -> None:
    assert list(sharing(set())) == []


# runs that need a person


def test_a_run_that_was_set_aside_is_told(used_file: Path) -> None:
    change(used_file, "UPDATE runs SET status = 'set aside: it limps', wake = NULL WHERE run = 'waiting'")
    checks = found(used_file)
    assert checks["set aside"].level == "warning"
    assert checks["set aside"].says.startswith("waiting; ")
    assert checks["runs"].says == "2 done, 1 set aside"


def test_a_damaged_head_is_worth_knowing(used_file: Path) -> None:
    change(used_file, "UPDATE runs SET head = x'7b' WHERE run = 'one'")
    assert found(used_file)["damaged"].says.startswith("one; `moot resume`")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE runs SET record = x'7b' WHERE run = 'waiting'",
        "UPDATE entries SET body = x'7b' WHERE run = (SELECT number FROM runs WHERE run = 'waiting')",
    ],
    ids=["record", "journal"],
)
def test_a_run_that_cannot_be_read_is_a_problem_and_the_others_are_counted(used_file: Path, statement: str) -> None:
    change(used_file, statement)
    checks = found(used_file)
    assert checks["unreadable"].level == "problem"
    assert checks["unreadable"].says.startswith("waiting (")
    assert checks["runs"].says == "2 done, 1 unreadable"


def test_of_many_runs_only_some_are_named(file: Path) -> None:
    for number in range(7):
        run(OVER, run_id=f"run-{number}", store=f"sqlite:{file}")
    change(file, "UPDATE runs SET head = x'7b'")
    assert found(file)["damaged"].says.startswith("run-0, run-1, run-2, run-3, run-4 and 2 more; ")


# settings and tools


@pytest.mark.parametrize(
    ("name", "value", "check", "level", "says"),
    [
        ("MOOTHALL_MODEL", "", "model", "ok", "none is set; rehearsal stands in, and says so"),
        ("MOOTHALL_MODEL", "rehearsal", "model", "ok", "rehearsal"),
        ("MOOTHALL_MODEL", "gpt", "model", "problem", "MOOTHALL_MODEL: 'gpt' is not a model"),
        ("MOOTHALL_MODEL", "scripted:none.json", "model", "problem", "none.json"),
        ("MOOTHALL_DURABILITY", "", "durability", "ok", "full"),
        ("MOOTHALL_DURABILITY", "normal", "durability", "warning", "normal"),
        ("MOOTHALL_DURABILITY", "none", "durability", "problem", "MOOTHALL_DURABILITY: 'none' is not a durability"),
        ("MOOTHALL_PRUNE", "", "retention", "ok", "no run is deleted by itself"),
        ("MOOTHALL_PRUNE", "30", "retention", "ok", "workers delete runs 30 days after their end"),
        ("MOOTHALL_PRUNE", "0", "retention", "problem", "MOOTHALL_PRUNE: prune = '0' is not a number of days above 0"),
        ("MOOTHALL_PRUNE", "soon", "retention", "problem", "prune = 'soon' is not a number of days above 0"),
        ("MOOTHALL_ON_WAIT", "http://host/hook?token=secret", "on wait", "ok", "http://host is told"),
        ("MOOTHALL_ON_WAIT", "true --token secret", "on wait", "ok", "true is told"),
        ("MOOTHALL_ON_WAIT", "no-such-pigeon x", "on wait", "problem", "there is no command no-such-pigeon"),
        ("MOOTHALL_ON_WAIT", "say 'x", "on wait", "problem", "No closing quotation"),
    ],
)
def test_what_is_set_is_looked_at(
    name: str, value: str, check: str, level: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    checks = {one.name: one for one in examine("memory")}
    assert (checks[check].level, says in checks[check].says) == (level, True)
    assert "secret" not in checks[check].says


@pytest.mark.parametrize(
    ("skew", "level", "says"),
    [
        (0.0, "ok", "within 2 s of the server's"),
        (-10.0, "warning", "10 s behind the server's; let NTP set the clocks"),
        (10.0, "warning", "10 s ahead of the server's; let NTP set the clocks"),
    ],
)
def test_a_clock_that_is_not_the_servers_is_worth_knowing(
    database: str, skew: float, level: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "time", SimpleNamespace(time=lambda: time.time() + skew))
    [clock] = [check for check in examine(database) if check.name == "clock"]
    assert (clock.level, says in clock.says) == (level, True), clock


def test_a_durability_that_means_nothing_does_not_keep_the_doctor_from_the_store(
    used_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOOTHALL_DURABILITY", "none")
    assert found(used_file)["runs"].level == "ok"


KEYS = """
model = "smart"
[levels]
smart = "openai:a@http://127.0.0.1:1/v1"
fast = "openai:b"
[addresses."http://127.0.0.1:1/v1"]
key = "hush-hush-1"
[addresses."http://127.0.0.1:2/v1"]
key_from = "NOBODY_SETS_THIS"
"""


def test_models_levels_and_keys_are_told_with_where_they_come_from_and_never_what_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "hush-hush-2")
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    (tmp_path / "home").mkdir()
    settings = tmp_path / "home" / "settings.toml"
    settings.write_text(KEYS)
    settings.chmod(0o644)
    told = [(one.name, one.level, one.says) for one in examine("memory")]
    assert ("settings", "warning", f"{settings} has a key in it, and others may read it; `chmod 600` it") in told
    assert ("model", "ok", "smart (settings.toml)") in told
    assert ("smart", "ok", "openai:a@http://127.0.0.1:1/v1 (settings.toml)") in told
    assert ("fast", "problem", "settings.toml: openai:b needs a key: set OPENAI_API_KEY") in told
    assert ("key", "ok", "ANTHROPIC_API_KEY is set; it goes to https://api.anthropic.com alone") in told
    assert ("key", "ok", "the one in settings.toml goes to http://127.0.0.1:1/v1") in told
    assert ("key", "warning", "NOBODY_SETS_THIS is not set; http://127.0.0.1:2/v1 gets no key") in told
    assert "hush" not in str(told)


def test_a_tool_that_is_missing_is_no_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    checks = {one.name: one for one in examine("memory")}
    assert said(checks["dot"]) == ("ok", "not found; it draws what `moot graph --format dot` writes")
    monkeypatch.setattr(doctor, "is_installed", lambda: False)
    assert {one.name: one for one in examine("memory")}["quickjs"].level == "warning"


def test_the_audit_key_should_be_nobody_elses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "audit.key"
    assert doctor.key(file).level == "ok"
    monkeypatch.setenv("MOOTHALL_AUDIT_KEY", str(file))
    assert (doctor.key(file).level, "is not there" in doctor.key(file).says) == ("problem", True)
    file.touch(0o600)
    assert (doctor.key(file).level, "is empty" in doctor.key(file).says) == ("warning", True)
    file.write_bytes(b"a key")
    assert doctor.key(file).level == "ok"
    file.chmod(0o644)
    assert (doctor.key(file).level, "chmod 600" in doctor.key(file).says) == ("warning", True)
    assert doctor.key(tmp_path).level == "problem"


def test_anchors_should_be_there_to_be_written_and_nobody_elses(tmp_path: Path) -> None:
    folder = tmp_path / "anchors"
    assert (doctor.anchors(folder).level, "not there yet" in doctor.anchors(folder).says) == ("ok", True)
    folder.mkdir(0o700)
    assert doctor.anchors(folder).level == "ok"
    (folder / "store.jsonl").touch(0o600)
    assert doctor.anchors(folder).level == "ok"
    (folder / "store.jsonl").chmod(0o666)
    assert (doctor.anchors(folder).level, "others may change" in doctor.anchors(folder).says) == ("warning", True)
    (tmp_path / "file").touch()
    assert doctor.anchors(tmp_path / "file").level == "problem"


def test_it_is_said_what_protects_this_machine_from_the_commands_of_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "PLACES", "/nowhere")
    check = {one.name: one for one in examine("memory")}["sandbox"]
    assert check.level == "warning"
    assert check.says.startswith(
        "nothing protects this machine, so agents run no commands: bubblewrap is not installed"
    )


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
@pytest.mark.parametrize("counted", [True, False])
def test_it_is_said_where_the_memory_of_commands_is_not_counted_together(
    monkeypatch: pytest.MonkeyPatch, counted: bool
) -> None:
    monkeypatch.setattr(doctor, "counts_memory", lambda: counted)
    check = {one.name: one for one in examine("memory")}["sandbox"]
    assert ("the limit of memory holds for each process" in check.says) is not counted


@pytest.mark.parametrize(
    ("spent", "level", "says"),
    [
        ("", "ok", "usd 0.00 of 2.00 were spent today (daily_usd)"),
        ('{"day": "%s", "usd": 1.5}', "ok", "usd 1.50 of 2.00 were spent today (daily_usd)"),
        ('{"day": "%s", "usd": 2.5}', "warning", "usd 2.50 of 2.00 were spent today (daily_usd); calls wait until"),
        ("{", "problem", "is damaged; delete it"),
    ],
)
def test_what_is_left_of_the_day_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spent: str, level: str, says: str
) -> None:
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path))
    (tmp_path / "settings.toml").write_text("daily_usd = 2\n")
    file = tmp_path / "spent-today.json"
    if spent:
        file.write_text(spent.replace("%s", datetime.now(UTC).date().isoformat()))
    [check] = [check for check in examine(None) if check.name == "spending"]
    assert (check.level, says in check.says) == (level, True)
    assert file.exists() == bool(spent)
