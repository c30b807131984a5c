"""Servers of the Model Context Protocol, over stdio or HTTP, by the official SDK.

The SDK asks which protocol a server speaks: that of 2026-07-28, which keeps no session, or the handshake before it.
A server is started or reached when one of its tools is first called, and looked at before every call: if it does not
offer what was pinned, nothing is called (`ServerChanged`). One task talks to it, for the SDK wants that; the others ask
that task. It rests after a while without work.

| what a server does | what becomes of the call |
|---|---|
| it says that the tool failed | a final failure, which the agent reads |
| it hangs | a failure after its timeout; an `at-most-once` call is in doubt, others are tried again |
| it crashes, or cannot be reached | the same, at once |
| it offers other tools, descriptions or schemas than were pinned | `ServerChanged`: the turn ends, nothing is called |
| its result does not fit the schema that it gives | a final failure |
| it returns more than `LARGEST` characters | a final failure that says how much it was |

Servers may ask for nothing: neither sampling nor roots nor questions are offered to them.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from typing import Any

from moothall.agents.toolserver import CallLost, Pinned, ServerChanged, Toolserver, changes
from moothall.agents.workspace import Unequipped
from moothall.errors import DefinitionError, EffectFailed, words_of

LARGEST = 200_000
"""The longest result of a call, in characters of JSON."""
PAGES = 100
Asked = tuple[str, Mapping[str, Any], "asyncio.Future[Any]"]


class MCPServer:
    """A server, and the task that talks to it while there is work; after so many seconds without, it is let go."""

    def __init__(
        self,
        name: str,
        server: Toolserver,
        pinned: tuple[Pinned, ...] | None,
        environment: Mapping[str, str],
        *,
        rest: float = 60.0,
    ) -> None:
        self._name, self._server, self._pinned, self._environment = name, server, pinned, environment
        self._rest = rest
        self._asked: asyncio.Queue[Asked] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._is_reached = False
        self._loop: asyncio.AbstractEventLoop | None = None

    async def tools(self) -> tuple[Pinned, ...]:
        """What it offers now; it is let go again."""
        try:
            async with asyncio.timeout(self._server.timeout), AsyncExitStack() as stack:
                return await _list_tools(await self._connect(stack))
        except TimeoutError as error:
            raise EffectFailed(
                f"server {self._name}: nothing was heard of it for {self._server.timeout:g} s"
            ) from error
        except Exception as error:  # the SDK raises groups of whatever the transport raised
            raise _plain(self._name, error) from error

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Call one of its tools."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop or self._task is None or self._task.done():
            self._asked, self._loop = asyncio.Queue(), loop
            self._task = loop.create_task(self._talk(self._asked))
        answer: asyncio.Future[Any] = loop.create_future()
        self._asked.put_nowait((tool, arguments, answer))
        try:
            async with asyncio.timeout(self._server.timeout):
                return await answer
        except TimeoutError as error:
            self._task.cancel()
            kind = CallLost if self._is_reached else EffectFailed
            raise kind(f"server {self._name}: nothing was heard of it for {self._server.timeout:g} s") from error

    async def _talk(self, asked: asyncio.Queue[Asked]) -> None:
        """Reach the server, and pass on what it is asked until there is nothing more."""
        waiting: list[asyncio.Future[Any]] = []
        self._is_reached = False
        failure: BaseException = EffectFailed(f"server {self._name}: its connection is closed")
        try:
            async with AsyncExitStack() as stack:
                client = await self._connect(stack)
                async with asyncio.TaskGroup() as group:
                    while True:
                        waiting = [future for future in waiting if not future.done()]
                        try:
                            async with asyncio.timeout(self._rest):
                                tool, arguments, answer = await asked.get()
                        except TimeoutError:
                            if any(not future.done() for future in waiting):
                                continue
                            break
                        waiting.append(answer)
                        group.create_task(self._answer(client, tool, arguments, answer))
        except Exception as error:  # whoever asked is told; nobody waits for this task
            failure = _plain(self._name, error)
        finally:
            is_lost = isinstance(failure, EffectFailed) and not failure.final
            for future in waiting:  # these were passed on, and so may have been done
                if not future.done():
                    future.set_exception(CallLost(str(failure)) if is_lost else failure)
            while not asked.empty():
                if not (future := asked.get_nowait()[2]).done():
                    future.set_exception(failure)

    async def _answer(self, client: Any, tool: str, arguments: Mapping[str, Any], answer: asyncio.Future[Any]) -> None:
        is_sent = False
        try:
            self._compare(await _list_tools(client))
            self._is_reached = is_sent = True
            result = await client.call_tool(tool, dict(arguments))
            value = _value(self._name, tool, result)
        except EffectFailed as said:
            with suppress(asyncio.InvalidStateError):
                answer.set_exception(said)
        except Exception as error:  # what the server did wrong is for whoever asked
            with suppress(asyncio.InvalidStateError):
                failure = _plain(self._name, error)
                is_final = not isinstance(failure, EffectFailed) or failure.final
                answer.set_exception(CallLost(str(failure)) if is_sent and not is_final else failure)
        else:
            with suppress(asyncio.InvalidStateError):
                answer.set_result(value)

    def _compare(self, now: tuple[Pinned, ...]) -> None:
        if self._pinned is None:
            raise ServerChanged(f"server {self._name} is not trusted; look at it with `moot trust`")
        if said := changes(self._pinned, now):
            what = "; ".join(said)
            raise ServerChanged(
                f"server {self._name} has changed since it was trusted: {what}; look at it, then run `moot trust`"
            )

    async def _connect(self, stack: AsyncExitStack) -> Any:
        try:
            from mcp import Client, StdioServerParameters  # most runs have no servers
            from mcp.client.stdio import stdio_client
        except ImportError as error:
            raise Unequipped(f"server {self._name} needs the extra mcp: pip install 'moothall[mcp]'") from error
        server, timeout = self._server, self._server.timeout
        if server.url:
            return await stack.enter_async_context(Client(await self._http(stack), read_timeout_seconds=timeout))
        given = {name: self._environment[name] for name in server.env_from if name in self._environment}
        how = StdioServerParameters(
            command=server.command[0], args=list(server.command[1:]), env=given, cwd=server.folder or None
        )
        silence = stack.enter_context(open(os.devnull, "w"))  # noqa: ASYNC230, SIM115 (no disk; the stack closes it)
        return await stack.enter_async_context(Client(stdio_client(how, silence), read_timeout_seconds=timeout))

    async def _http(self, stack: AsyncExitStack) -> Any:
        from mcp.client.streamable_http import streamable_http_client

        server = self._server
        if not server.key_from:
            return streamable_http_client(server.url)
        if server.key_from not in self._environment:
            raise Unequipped(f"server {self._name}: {server.key_from} is not set, and its key is there")
        import httpx2

        headers = {"Authorization": f"Bearer {self._environment[server.key_from]}"}
        client = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=server.timeout))
        return streamable_http_client(server.url, http_client=client)


async def _list_tools(client: Any) -> tuple[Pinned, ...]:
    tools: list[Pinned] = []
    cursor = None
    for _ in range(PAGES):
        page = await client.list_tools(cursor=cursor, cache_mode="refresh")
        tools += [Pinned(tool.name, tool.description or "", dict(tool.input_schema)) for tool in page.tools]
        cursor = page.next_cursor
        if not cursor:
            return tuple(sorted(tools, key=lambda tool: tool.name))
    raise EffectFailed(f"it lists more than {PAGES} pages of tools", final=True)


def _value(server: str, tool: str, result: Any) -> Any:
    """What a call returned: its structured content where there is some, else its texts."""
    texts = [str(getattr(part, "text", f"[{part.type}]")) for part in result.content]
    if result.is_error:
        raise EffectFailed(f"{tool} failed: {' '.join(texts)[:2000]}", final=True)
    value = result.structured_content if result.structured_content is not None else "\n".join(texts)
    size = len(json.dumps(value, ensure_ascii=False))
    if size > LARGEST:
        raise EffectFailed(
            f"server {server}: {tool} returned {size} characters, more than {LARGEST}; ask it for less", final=True
        )
    return value


def _plain(server: str, error: BaseException) -> Exception:
    """The error that is behind others, in our words."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = next((inner for inner in error.exceptions if isinstance(inner, DefinitionError)), error.exceptions[0])
    if isinstance(error, DefinitionError | EffectFailed):
        return error
    is_lie = isinstance(error, RuntimeError | ValueError) and "schema" in str(error).lower()
    return EffectFailed(f"server {server}: {words_of(error)}", final=is_lie)
