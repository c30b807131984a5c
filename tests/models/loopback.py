"""A provider on this machine that does as it is told: it speaks three protocols, streams, and fails on request.

What the next request gets is a value of the script: something said, or a fault. When the script is over, the last
value stays. Everything that was asked is kept, with the headers.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from queue import Queue
from threading import Event, Thread
from typing import Any

USED = (11, 7)


@dataclass(frozen=True)
class Said:
    """A reply: text, calls of tools as (id, name, arguments as a text), and the tokens it used, where that is told."""

    text: str = ""
    calls: Sequence[tuple[str, str, str]] = ()
    used: tuple[int, int] | None = USED
    finish: str = ""


@dataclass(frozen=True)
class Fault:
    """Something else than a reply: a status with a body, perhaps cut off, late, or not at all.

    `cut` is how many bytes of the body are sent; `announced` whether its length is said before.
    """

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    kind: str = "application/json"
    reset: bool = False
    hang: bool = False


@dataclass(frozen=True)
class Cut:
    """A reply of which only so many bytes come, as if that were all."""

    said: Said
    at: int


@dataclass(frozen=True)
class Begun:
    """A reply that is streamed, of which so many events come, and then nothing more; the connection stays open."""

    said: Said
    events: int


Turn = Said | Fault | Cut | Begun


@dataclass(frozen=True)
class Asked:
    """A request as it came in."""

    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Loopback:
    """The server: its address, its script, what it was asked, and how many requests it had at the same time."""

    script: list[Turn | Callable[[Asked], Turn]]
    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    now: int = 0
    most: int = 0
    connections: int = 0

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def address(self) -> str:
        return f"{self.root}/v1"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while await self._serve_one(reader, writer):
                pass
        writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.split("\r\n")
        if first.startswith("HEAD "):
            writer.write(b"HTTP/1.1 404 X\r\ncontent-length: 0\r\n\r\n")
            await writer.drain()
            return True
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
        asked = Asked(first.split()[1], headers, json.loads(await reader.readexactly(int(headers["content-length"]))))
        self.asked.append(asked)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            turn = self.script[min(len(self.asked), len(self.script)) - 1]
            return await _answer(turn(asked) if callable(turn) else turn, asked, writer)
        finally:
            self.now -= 1


async def _answer(turn: Turn, asked: Asked, writer: asyncio.StreamWriter) -> bool:
    """Answer one request; whether the connection stays open."""
    match turn:
        case Fault(reset=True):
            sock: socket.socket = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
            return False
        case Fault(hang=True):
            await asyncio.Event().wait()
            return False
        case Fault(status, body, headers, kind):
            lines = [f"HTTP/1.1 {status} X", f"content-type: {kind}", f"content-length: {len(body)}"]
            lines += [f"{name}: {value}" for name, value in headers]
            writer.write("\r\n".join([*lines, "", ""]).encode() + body)
            await writer.drain()
            return True
        case Cut(said, at):
            kind, body = encoded(said, asked)
            writer.write(f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n".encode() + body[:at])
            await writer.drain()
            return False
        case Begun(said, events):
            kind, body = encoded(said, asked)
            writer.write(f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n".encode())
            for event in body.split(b"\n\n")[:events]:
                writer.write(event + b"\n\n")
                await writer.drain()
            await asyncio.Event().wait()
            return False
        case Said():
            kind, body = encoded(turn, asked)
            writer.write(f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n".encode())
            writer.write(body)
            await writer.drain()
            return True


@contextmanager
def loopback_aside(*script: Turn | Callable[[Asked], Turn]) -> Iterator[Loopback]:
    """The same for tests that are not async: the server has a thread and an event loop of its own."""
    begun: Queue[Loopback] = Queue()
    over = Event()

    async def serve() -> None:
        async with loopback(*script) as served:
            # The thread that waits begins first: a test that forks would find its lock taken.
            waiting = asyncio.get_running_loop().run_in_executor(None, over.wait)
            begun.put(served)
            await waiting

    thread = Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        yield begun.get(timeout=30)
    finally:
        over.set()
        thread.join()


@asynccontextmanager
async def loopback(*script: Turn | Callable[[Asked], Turn]) -> AsyncIterator[Loopback]:
    """A server with this script, while the context lasts."""
    served = Loopback(list(script))
    handling: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handling.add(task)
        try:
            await served.serve(reader, writer)
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            handling.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 26)
    served.port = server.sockets[0].getsockname()[1]
    try:
        yield served
    finally:
        server.close()
        for task in list(handling):
            task.cancel()
        await asyncio.gather(*handling, return_exceptions=True)
        await asyncio.sleep(0)  # the sockets are closed by the loop's next round


def encoded(said: Said, asked: Asked) -> tuple[str, bytes]:
    """A reply in the protocol of the request: its content type and its body."""
    if asked.path.endswith("/chat/completions"):
        if asked.body.get("stream"):
            return "text/event-stream", b"".join(_events(_openai_chunks(said)))
        return "application/json", _json(_openai(said))
    if asked.path.endswith("/messages") or "/messages?" in asked.path:
        if asked.body.get("stream"):
            return "text/event-stream", b"".join(_events(_anthropic_events(said)))
        return "application/json", _json(_anthropic(said))
    if "streamGenerateContent" in asked.path:
        return "text/event-stream", b"data: " + _json(_google(said)) + b"\r\n\r\n"
    return "application/json", _json(_google(said))


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _events(values: Iterator[Any]) -> Iterator[bytes]:
    for value in values:
        if value == "[DONE]":
            yield b"data: [DONE]\n\n"
        else:
            name = f"event: {value['type']}\n".encode() if "type" in value else b""
            yield name + b"data: " + _json(value) + b"\n\n"


def _pieces(text: str) -> list[str]:
    size = max(1, -(-len(text) // 2))
    return [text[at : at + size] for at in range(0, len(text), size)]


# OpenAI


def _openai_calls(said: Said) -> list[dict[str, Any]]:
    return [
        {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for id, name, arguments in said.calls
    ]


def _openai_used(said: Said) -> dict[str, Any]:
    if said.used is None:
        return {}
    into, out = said.used
    return {"usage": {"prompt_tokens": into, "completion_tokens": out, "total_tokens": into + out}}


def _openai(said: Said) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": said.text or None}
    if said.calls:
        message["tool_calls"] = _openai_calls(said)
    finish = said.finish or ("tool_calls" if said.calls else "stop")
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        **_openai_used(said),
    }


def _openai_chunks(said: Said) -> Iterator[Any]:
    base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(said.text):
        yield chunk({"content": piece})
    for index, call in enumerate(_openai_calls(said)):
        arguments = call["function"]["arguments"]
        begun = {**call, "index": index, "function": {**call["function"], "arguments": ""}}
        yield chunk({"tool_calls": [begun]})
        for piece in _pieces(arguments):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, said.finish or ("tool_calls" if said.calls else "stop"))
    if said.used is not None:
        yield {**base, "choices": [], **_openai_used(said)}
    yield "[DONE]"


# Anthropic


def _anthropic_input(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _anthropic_used(said: Said) -> dict[str, int]:
    into, out = said.used or (0, 0)
    return {"input_tokens": into, "output_tokens": out}


def _anthropic_stop(said: Said) -> str:
    return {"length": "max_tokens"}.get(said.finish, said.finish) or ("tool_use" if said.calls else "end_turn")


def _anthropic(said: Said) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": said.text}] if said.text else []
    content += [
        {"type": "tool_use", "id": id, "name": name, "input": _anthropic_input(arguments)}
        for id, name, arguments in said.calls
    ]
    base: dict[str, Any] = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": content}
    return {**base, "stop_reason": _anthropic_stop(said), "stop_sequence": None, "usage": _anthropic_used(said)}


def _anthropic_events(said: Said) -> Iterator[Any]:
    whole = _anthropic(Said(used=said.used))
    yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
    index = 0
    if said.text:
        yield {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}
        for piece in _pieces(said.text):
            yield {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": piece}}
        yield {"type": "content_block_stop", "index": index}
        index += 1
    for id, name, arguments in said.calls:
        block = {"type": "tool_use", "id": id, "name": name, "input": {}}
        yield {"type": "content_block_start", "index": index, "content_block": block}
        for piece in _pieces(arguments):
            more = {"type": "input_json_delta", "partial_json": piece}
            yield {"type": "content_block_delta", "index": index, "delta": more}
        yield {"type": "content_block_stop", "index": index}
        index += 1
    stop: dict[str, Any] = {"stop_reason": _anthropic_stop(said), "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": _anthropic_used(said)["output_tokens"]}}
    yield {"type": "message_stop"}


# Google


def _google(said: Said) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": said.text}] if said.text else []
    parts += [{"functionCall": {"id": id, "name": name, "args": json.loads(args)}} for id, name, args in said.calls]
    finish = {"length": "MAX_TOKENS"}.get(said.finish, said.finish) or "STOP"
    found: dict[str, Any] = {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": finish, "index": 0}],
        "modelVersion": "m",
    }
    if said.used is not None:
        into, out = said.used
        found["usageMetadata"] = {"promptTokenCount": into, "candidatesTokenCount": out, "totalTokenCount": into + out}
    return found
