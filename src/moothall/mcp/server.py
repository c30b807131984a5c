"""Machines as tools of the Model Context Protocol: `start`, `status`, `answer`, `result`, `cancel`.

`start` comes back at once with the id of a run, which goes on beside. A client sees the machines that the user named,
and the runs of those. Where a run waits for a person its status is `input_required`, with the questions and the schemas
of their answers; who answers is the client, and the journal says so.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Coroutine, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal, ParamSpec, TypeVar

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from moothall import __version__
from moothall.app.kinds.catalogue import Order, start_order
from moothall.app.kinds.source import find
from moothall.app.runs.acts import Acts
from moothall.app.runs.begin import warnings_of_run
from moothall.app.runs.moothall import Moothall
from moothall.app.runs.view import Summary, summary_of_run
from moothall.app.values import encode
from moothall.errors import MoothallError, Refused

P = ParamSpec("P")
T = TypeVar("T")
Standing = Literal["working", "input_required", "completed", "failed", "cancelled"]
STANDINGS: Mapping[str, Standing] = {
    "running": "working",
    "waiting": "input_required",
    "done": "completed",
    "cancelled": "cancelled",
}
"""How a run stands in the words of the protocol; every other way is a failure."""
PERSON = "mcp"
"""Who answers, for the journal."""
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


@dataclass(frozen=True)
class Question:
    """What a run waits for."""

    id: str
    prompt: str
    schema: Any


@dataclass(frozen=True)
class Status:
    """Where a run stands."""

    run_id: str
    machine: str
    status: Standing
    states: list[str]
    reason: str
    spent: dict[str, float]
    questions: list[Question]
    warnings: list[str]


@dataclass(frozen=True)
class Ended:
    """What came of a run; `result` is null while it goes on."""

    run_id: str
    status: Standing
    result: Any
    reason: str


class Served:
    """The tools of a server: the machines that it may start, by name, and the runs of those."""

    def __init__(self, hall: Moothall, machines: Mapping[str, str], model: str = "") -> None:
        self._hall, self._machines, self._model = hall, machines, model
        self._names = {find_name(source): name for name, source in machines.items()}
        self._acts = Acts(hall)

    async def start(self, machine: str, input: Any = None) -> Status:
        """Start a run of a machine and come back at once; ask for its status with the run_id."""
        if machine not in self._machines:
            raise Refused(f"there is no machine {machine!r}; there are {', '.join(sorted(self._machines))}")
        run = await start_order(self._hall, Order(self._machines[machine], input, self._model))
        return await self.status(run)

    async def status(self, run_id: str) -> Status:
        """Where a run stands, what it has spent, and the questions that it waits with."""
        summary = await self._summary(run_id)
        questions = [
            Question(id=question["id"], prompt=question["prompt"], schema=encode(question["schema"]))
            for question in summary.questions
        ]
        return Status(
            run_id=run_id,
            machine=self._names[summary.machine],
            status=standing(summary.status),
            states=list(summary.states),
            reason=summary.reason,
            spent=dict(summary.spent),
            questions=questions,
            warnings=list(warnings_of_run(summary.model, summary.limits)),
        )

    async def answer(self, run_id: str, value: Any, question: str | None = None) -> Status:
        """Answer a question of a run whose status is input_required; the run goes on beside."""
        await self._summary(run_id)
        await self._acts.answer(run_id, value, question, PERSON)
        return await self.status(run_id)

    async def result(self, run_id: str) -> Ended:
        """What came of a run: its result where its status is completed."""
        summary = await self._summary(run_id)
        ended = standing(summary.status)
        result = None
        if ended not in ("working", "input_required"):
            result = encode((await self._hall.resume(run_id)).result)
        return Ended(run_id=run_id, status=ended, result=result, reason=summary.reason)

    async def cancel(self, run_id: str, reason: str = "asked for by an MCP client") -> Status:
        """Ask a run to stop."""
        await self._summary(run_id)
        await self._hall.cancel(run_id, reason)
        return await self.status(run_id)

    async def _summary(self, run: str) -> Summary:
        """A run of one of the machines; others are not there for a client."""
        try:
            summary = await summary_of_run(self._hall.store, run)
        except Refused:
            summary = None
        if summary is None or summary.machine not in self._names:
            raise Refused(f"there is no run {run!r}")
        return summary


def find_name(source: str) -> str:
    """The name of the machine that a source stands for."""
    return find(source).name


def standing(status: str) -> Standing:
    """How a run stands, in the words of the protocol."""
    return STANDINGS.get(status, "failed")


def with_refusals(tool: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """The same tool; what was refused is told to the client."""

    @wraps(tool)
    async def told(*arguments: P.args, **more: P.kwargs) -> T:
        try:
            return await tool(*arguments, **more)
        except MoothallError as error:
            raise ToolError(str(error)) from error

    return told


def server_of(hall: Moothall, machines: Mapping[str, str], model: str = "") -> MCPServer:
    """A server of these machines."""
    names = ", ".join(sorted(machines))
    told = f"Runs of these machines can be started: {names}."
    server = MCPServer("moothall", version=__version__, instructions=told, log_level="ERROR")
    served = Served(hall, machines, model)
    for tool in (served.start, served.status, served.answer, served.result, served.cancel):
        server.add_tool(with_refusals(tool), structured_output=True)
    return server


def behind_token(application: Application, token: str) -> Application:
    """The same, for those who have the token."""

    async def checked(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        given = dict(scope.get("headers", ())).get(b"authorization", b"")
        if scope["type"] == "http" and not hmac.compare_digest(given, f"Bearer {token}".encode()):
            await send({"type": "http.response.start", "status": 401, "headers": [(b"www-authenticate", b"Bearer")]})
            await send({"type": "http.response.body", "body": b"send Authorization: Bearer TOKEN\n"})
            return
        await application(scope, receive, send)

    return checked


def sources_of(given: Sequence[str]) -> Mapping[str, str]:
    """The machines that were named, by the names that clients use: NAME=SOURCE, or the source's own."""
    machines: dict[str, str] = {}
    for text in given:
        name, is_named, source = text.partition("=")
        name, source = (name, source) if is_named else (find_name(text), text)
        if machines.setdefault(name, source) != source:
            raise Refused(f"two machines are called {name!r}; write NAME={source}")
    return machines
