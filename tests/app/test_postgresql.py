"""A store on a PostgreSQL server, wherever a store is named."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from moothall.app.config.settings import open_store
from moothall.errors import DefinitionError, EffectFailed, Refused
from moothall.stores.connections import public_address
from tests.cli.process import EXAMPLES, moot
from tests.postgres import PASSWORD, PostgresServer


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path))


def test_a_run_goes_on_in_another_process_and_no_command_tells_the_password(tmp_path: Path, database: str) -> None:
    more = {"MOOTHALL_STORE": database}
    began = moot("run", f"{EXAMPLES}/approval.py:OFFER", "tides", "--run-id", "first", home=tmp_path, more=more)
    assert began.returncode == 5, began.stderr
    answered = moot("answer", "first", "--yes", "--store", database, home=tmp_path)
    assert answered.returncode == 0, answered.stderr
    listed = json.loads(moot("ls", "--json", home=tmp_path, more=more).stdout)
    assert [(run["run"], run["status"]) for run in listed] == [("first", "done")]
    audited = moot("audit", "first", home=tmp_path, more=more)
    assert audited.returncode == 0, audited.stdout + audited.stderr
    replayed = moot("replay", "first", "--machine", f"{EXAMPLES}/approval.py", home=tmp_path, more=more)
    assert replayed.returncode == 0, replayed.stderr
    looked = moot("doctor", home=tmp_path, more=more)
    assert "it lets us in" in looked.stdout
    assert "1 done" in looked.stdout
    said = [began, answered, audited, looked]
    assert not any(PASSWORD in ran.stdout + ran.stderr for ran in said)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://ann:secret@host:5432/runs", "postgresql://ann@host:5432/runs"),
        ("postgresql://ann:se:cr@et@host/runs?sslmode=require", "postgresql://ann@host/runs?sslmode=require"),
        (
            "postgresql://host/runs?user=ann&password=secret&sslmode=require",
            "postgresql://host/runs?user=ann&sslmode=require",
        ),
        ("postgresql://host/runs?password=secret", "postgresql://host/runs"),
        ("postgresql:///runs", "postgresql:///runs"),
        ("sqlite:a@b:c.db", "sqlite:a@b:c.db"),
    ],
)
def test_an_address_is_shown_without_its_password(address: str, shown: str) -> None:
    assert public_address(address) == shown


def refusal(address: str) -> Exception:
    store = open_store(address)
    try:
        with pytest.raises((DefinitionError, EffectFailed, Refused)) as error:
            asyncio.run(store.runs())
        return error.value
    finally:
        store.close()


def test_what_stands_between_us_and_a_server_is_told_with_its_remedy(postgres: PostgresServer) -> None:
    wrong = refusal(postgres.address("postgres", password="wrong-word"))
    assert isinstance(wrong, Refused)
    assert "does not let us in: password authentication failed for user" in str(wrong)
    assert "PGPASSWORD" in str(wrong)
    assert "wrong-word" not in str(wrong)
    missing = refusal(postgres.address("nowhere"))
    assert str(missing).endswith('database "nowhere" does not exist; make it:  createdb nowhere')
    away = refusal("postgresql://ann:secret@127.0.0.1:1/runs")
    assert isinstance(away, EffectFailed)
    assert "postgresql://ann@127.0.0.1:1/runs cannot be reached" in str(away)
    strange = refusal("postgresql://ann:secret@127.0.0.1:port/runs")
    assert str(strange) == "'postgresql://ann@127.0.0.1:port/runs' is not an address of a PostgreSQL database"


def test_without_the_driver_the_command_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    with pytest.raises(DefinitionError) as error:
        open_store("postgresql://host/runs")
    assert str(error.value) == "a PostgreSQL store needs a driver: pip install 'moothall[postgresql]'"


def test_a_store_of_a_newer_moothall_is_refused(postgres: PostgresServer, database: str) -> None:
    store = open_store(database)
    asyncio.run(store.runs())
    store.close()
    postgres.execute("INSERT INTO moothall.migrations VALUES ('9999-later.sql')", database.rpartition("/")[2])
    assert "newer Moothall" in str(refusal(database))
