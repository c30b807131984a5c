from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from moothall.app.config.settings import VARIABLES
from moothall.kernel.simulate import Evaluate
from moothall.runtime.ports import Store
from moothall.scripting.children import is_installed
from moothall.scripting.javascript import JavaScript
from moothall.stores.memory import MemoryStore
from moothall.stores.postgresql import PostgresStore
from moothall.stores.sqlite import SqliteStore
from tests.cli.ran import Moot, in_this_process
from tests.postgres import PostgresServer, served
from tests.replaying import counted, noted

# A property holds on a busy computer too: how long an example takes by the clock is not part of any claim.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Async tests run on asyncio, the loop that the runtime is written for."""
    return "asyncio"


@pytest.fixture(autouse=True)
def _replayed(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every journal that a test made is decided again after it, and must come out the same."""
    if request.node.get_closest_marker("unreplayed") is not None:
        yield
        return
    with noted() as notes:
        yield
        differences = notes.differences()
    assert not differences, "\n".join(differences)


@pytest.fixture(scope="module")
def evaluate() -> Iterator[Evaluate | None]:
    """What evaluates the scripts of a document; nothing where no engine is installed."""
    if not is_installed():
        yield None
        return
    with JavaScript() as engine:
        yield engine


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where runs and settings are while the test lasts; nothing of the user's own is touched or read."""
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path / "home"))
    for name in (*VARIABLES.values(), "MOOTHALL_SECRETS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "home"


@pytest.fixture
def moot(capsys: pytest.CaptureFixture[str]) -> Iterator[Moot]:
    """`moot` in this process: arguments in, exit code and output out."""
    with in_this_process(capsys) as run:
        yield run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the store of the test is, or will be."""
    return tmp_path / "runs.db"


@pytest.fixture
def address(file: Path) -> str:
    """That file as users name a store."""
    return f"sqlite:{file}"


@pytest.fixture
def audit_key() -> bytes:
    """With what the journals of `store` are chained; with nothing unless a module says so."""
    return b""


@pytest.fixture
def store(file: Path, audit_key: bytes) -> Iterator[SqliteStore]:
    """A store in a file of its own."""
    store = SqliteStore(file, audit_key, durability="normal")
    yield store
    store.close()


@pytest.fixture(params=["memory", "strict memory", "sqlite"])
def each_store(request: pytest.FixtureRequest, file: Path) -> Iterator[Store]:
    """A store of each kind that needs no server, the one in a file with a key."""
    made: Store = (
        SqliteStore(file, b"key") if request.param == "sqlite" else MemoryStore(strict=request.param == "strict memory")
    )
    yield made
    made.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server, started when the first test wants it."""
    with served() as server:
        yield server


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[str]:
    """The address of a PostgreSQL database that is the test's own."""
    with postgres.database() as address:
        yield address


@pytest.fixture
async def postgres_store(database: str) -> AsyncIterator[PostgresStore]:
    """A store in that database."""
    store = PostgresStore(database)
    yield store
    store.close()


@pytest.fixture
def figure(capsys: pytest.CaptureFixture[str]) -> Iterator[list[str]]:
    """What a test counted, shown after it whatever pytest does with output."""
    said: list[str] = []
    yield said
    with capsys.disabled():
        for line in said:
            print(f"\n  {line}", end="")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how much was decided again."""
    if counted:
        elsewhere = counted["partly written elsewhere"]
        terminalreporter.write_line(
            f"decided again: {counted['journals']} journals, {counted['entries']} entries"
            + (f"; {elsewhere} more were partly written elsewhere" if elsewhere else "")
        )
