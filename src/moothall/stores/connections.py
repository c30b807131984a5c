"""The connections to a PostgreSQL server: made when they are needed, and made again where they were cut.

- A connection belongs to the event loop in which it was made. When that loop ends, its connections are closed; whoever
  comes from another loop gets new ones.
- Who is cut off in the middle of something does it again on another connection, for as long as patience lasts. What is
  done must bear that: a write says in its condition what it expects to find.
- What was begun and is cancelled is done all the same before whoever waits for it hears of that.
- No message holds a password.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from moothall.errors import Broken, DefinitionError, EffectFailed, MoothallError, Refused

T = TypeVar("T")
Work = Callable[[Any], Awaitable[T]]
MOST = 8
"""How many connections one process has to a store, besides the one that listens."""
KEEP_WHAT_IS_COMMITTED = (
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
)
"""A server that is set to answer before it has written would lose steps whose effects were performed."""
PATIENCE = 10.0
"""How long a server that was there may be out of reach before whoever waits is told, in seconds."""
LOCK = 0x6D6F6F74
"""The number of the lock under which tables are made and brought up to date."""
PAUSE = 0.05
GREETING = 5.0
"""How long a server may take to answer at first, in seconds."""
CHANNEL = "moothall"
INSTALL = "pip install 'moothall[postgresql]'"
SCHEMES = ("postgresql://", "postgres://")


def is_address(text: str) -> bool:
    """Whether a text is the address of a PostgreSQL database."""
    return text.startswith(SCHEMES)


def public_address(address: str) -> str:
    """An address without the password in it."""
    address = re.sub(r"(?<=[?&])password=[^&#]*&?", "", address).rstrip("?&")
    return re.sub(r"^(\w+://[^/?#]*?):[^/?#]*@", r"\1@", address)


def password_of(address: str) -> str:
    """The password in an address; "" where it has none."""
    if not is_address(address):
        return ""
    with suppress(ValueError):
        return unquote(urlsplit(address).password or "")
    return ""


def database_of(address: str) -> str:
    """The name of the database that an address names; "" where it names none."""
    return unquote(urlsplit(address).path.lstrip("/"))


def load_driver() -> Any:
    """The driver of PostgreSQL, or a refusal that says how to install it."""
    try:
        import asyncpg  # type: ignore[import-untyped]  # most have another store
    except ImportError as error:
        raise DefinitionError(f"a PostgreSQL store needs a driver: {INSTALL}") from error
    return asyncpg


class Unreachable(EffectFailed):
    """The server could not be reached for longer than patience lasts."""


class Connections:
    """A few connections to one database. `prepare` gets the first one before anybody else gets any."""

    def __init__(self, address: str, settings: Mapping[str, str], prepare: Callable[[Any], Awaitable[None]]) -> None:
        self.address = public_address(address)
        self._driver = load_driver()
        self._secret_address, self._settings, self._prepare = address, dict(settings), prepare
        self._loop: asyncio.AbstractEventLoop | None = None
        self._was_there = False
        self._lost: tuple[type[BaseException], ...] = (
            OSError,
            TimeoutError,
            self._driver.InterfaceError,
            self._driver.InternalClientError,
            self._driver.PostgresConnectionError,
            self._driver.AdminShutdownError,
            self._driver.CrashShutdownError,
            self._driver.CannotConnectNowError,
            self._driver.TooManyConnectionsError,
        )
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._free: list[Any] = []
        self._all: set[Any] = set()
        self._room = asyncio.Semaphore(MOST)
        self._first = asyncio.Lock()
        self._keeper: AsyncGenerator[None, None] | None = None

    async def fetch(self, statement: str, *values: Any) -> list[Any]:
        """The rows that a statement gives; one that is repeated must give the same."""
        rows: list[Any] = await self.do(lambda connection: connection.fetch(statement, *values))
        return rows

    async def do(self, work: Work[T]) -> T:
        """Do something with a connection of its own; again where it is cut off."""
        result, _ = await self.try_hard(work)
        return result

    async def try_hard(self, work: Work[T]) -> tuple[T, bool]:
        """The same, and whether it was cut off before: then it may have been done already."""
        doing = asyncio.ensure_future(self.keep_trying(work))
        try:
            return await asyncio.shield(doing)
        except asyncio.CancelledError:
            with suppress(MoothallError, asyncio.CancelledError):
                await doing
            raise

    async def keep_trying(self, work: Work[T]) -> tuple[T, bool]:
        """The same for somebody whom nobody cancels."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            await self._move_in(loop)
        until, was_cut = loop.time() + PATIENCE, False
        while True:
            try:
                return await self._try(work), was_cut
            except self._lost as error:
                if isinstance(error, ValueError):  # what was given cannot be sent, by any connection
                    raise
                if not self._was_there or loop.time() > until:
                    raise Unreachable(self._unreachable(error)) from error
                was_cut = True
                await asyncio.sleep(PAUSE)
            except self._driver.PostgresError as error:
                raise self._refusal(error) from error

    async def _try(self, work: Work[T]) -> T:
        async with self._room:
            connection = await self._taken()
            try:
                result = await work(connection)
            except BaseException:
                if connection.is_closed() or connection.is_in_transaction():
                    self._drop(connection)
                else:
                    self._free.append(connection)
                raise
            self._free.append(connection)
            return result

    async def _taken(self) -> Any:
        """A connection that nobody uses, the one that was used last first; a new one where there is none."""
        while self._free:
            connection = self._free.pop()
            if not connection.is_closed():
                return connection
            self._all.discard(connection)
        async with self._first:
            connection = await self.connect()
            if not self._was_there:
                try:
                    await self._prepare(connection)
                except BaseException:
                    self._drop(connection)
                    raise
                self._was_there = True
        return connection

    async def connect(self) -> Any:
        """A new connection, which is closed with the others."""
        try:
            connection = await self._driver.connect(
                self._secret_address, timeout=GREETING, server_settings=self._settings, statement_cache_size=200
            )
        except (ValueError, self._driver.ClientConfigurationError) as error:
            if isinstance(error, self._lost) and not isinstance(error, ValueError):
                raise
            raise DefinitionError(f"{self.address!r} is not an address of a PostgreSQL database") from error
        self._all.add(connection)
        try:
            await connection.execute(KEEP_WHAT_IS_COMMITTED)
        except BaseException:
            self._drop(connection)
            raise
        return connection

    def _drop(self, connection: Any) -> None:
        self._all.discard(connection)
        with suppress(Exception):  # whatever became of it, nobody uses it any more
            connection.terminate()

    async def _move_in(self, loop: asyncio.AbstractEventLoop) -> None:
        """Work in another loop from now on, and let go of everything when that loop ends."""
        self._begin_anew()
        self._loop = loop
        self._keeper = self._keep()
        await anext(self._keeper)

    async def _keep(self) -> AsyncGenerator[None, None]:
        """Is closed by the loop when that ends, and closes the connections with it."""
        everything = self._all
        try:
            yield
        finally:
            for connection in list(everything):
                self._drop(connection)
            await asyncio.sleep(0)

    def close(self) -> None:
        """Let go of the server."""
        for connection in list(self._all):
            self._drop(connection)
        self._loop = None

    def _unreachable(self, error: BaseException) -> str:
        said = str(error).strip() or type(error).__name__
        return f"the server of {self.address} cannot be reached: {said}; is it running, and is its address right?"

    def _refusal(self, error: Any) -> MoothallError:
        """What to say of an error that another attempt would meet again."""
        driver = self._driver
        if isinstance(error, driver.InvalidAuthorizationSpecificationError):
            return Refused(
                f"the server of {self.address} does not let us in: {error}; give the password in PGPASSWORD, in "
                "~/.pgpass or in the address"
            )
        if isinstance(error, driver.InvalidCatalogNameError):
            name = database_of(self._secret_address)
            return Refused(f"the server of {self.address} says: {error}; make it:  createdb {name}")
        if isinstance(error, driver.InsufficientPrivilegeError):
            return Refused(f"{self.address} cannot be used as a store: {error}; let the user own a schema `moothall`")
        if isinstance(error, driver.UniqueViolationError):
            return Broken(f"the journal holds an entry that its head does not know: {error}")
        if isinstance(error, driver.DataCorruptedError | driver.IndexCorruptedError):
            return Broken(f"the store is damaged: {error}; bring back a copy of the database")
        return EffectFailed(f"the store {self.address} could not do it: {error}; the run is as it was before")


class News:
    """Hears what is told on a channel of the server, from the first wait on.

    While nothing can be heard, because the connection was cut, `is_deaf` is true and everything may have changed.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._connection: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._heard = asyncio.Event()
        self.told: set[str] = set()

    @property
    def is_deaf(self) -> bool:
        """Whether something may be told now that nobody hears."""
        connection = self._connection
        return connection is None or connection.is_closed() or self._loop is not asyncio.get_running_loop()

    async def wait(self, seconds: float) -> None:
        """Come back when something was told, or after so many seconds."""
        if self.is_deaf:
            await self._listen()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._heard.wait(), seconds)
        self._heard.clear()

    async def _listen(self) -> None:
        self._loop, self._heard = asyncio.get_running_loop(), asyncio.Event()
        self._heard.set()  # what was told meanwhile was not heard

        async def begin(used: Any) -> None:
            connection = await self._connections.connect()
            await connection.add_listener(CHANNEL, self._hear)
            connection.add_termination_listener(lambda _: self._heard.set())
            self._connection = connection

        await self._connections.do(begin)

    def _hear(self, connection: Any, process: int, channel: str, run: str) -> None:
        self.told.add(run)
        self._heard.set()
