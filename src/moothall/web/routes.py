"""The routes: each parses what it is given, calls `app`, and renders what comes back as JSON without secrets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Header, Path, Query, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from moothall.app.config.settings import cleaner
from moothall.app.kinds.catalogue import Order, form_of, models, offers, preview, start
from moothall.app.kinds.draft import check_draft
from moothall.app.report.compare import compare
from moothall.app.report.report import FORMATS, report
from moothall.app.report.steps import Step
from moothall.app.runs.feed import FeedItem, Gap, Over, Speech
from moothall.app.runs.inbox import inbox
from moothall.app.runs.search import Wish, listing
from moothall.app.runs.view import Summary, export
from moothall.app.values import Budget, encode
from moothall.errors import MoothallError
from moothall.web.host import Hosting

router = APIRouter(prefix="/api")
RUN = r"^[A-Za-z0-9][A-Za-z0-9.\-]*$"
RunName = Annotated[str, Path(pattern=RUN, max_length=400, description="the run's id")]
Number = Annotated[int, Path(ge=0, le=2**53, description="the number of an entry")]
LONGEST = 400
TYPES = {"html": "text/html", "md": "text/markdown", "csv": "text/csv", "json": "application/json"}
STREAM = {"cache-control": "no-store", "x-accel-buffering": "no"}
REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"description": "not understood"},
    401: {"description": "no token"},
    403: {"description": "another host or origin, or read-only"},
    404: {"description": "there is no such run, or no such entry"},
    409: {"description": "refused; the sentence says why and what to do"},
    413: {"description": "too large"},
    422: {"description": "not of the shape that is wanted"},
    429: {"description": "too often"},
}


class Body(BaseModel):
    """What is sent has the fields that are named, and no others."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Wishes(Body):
    """Which runs are wanted."""

    model_config = ConfigDict(extra="forbid", strict=False)
    search: str = Field("", max_length=LONGEST)
    status: str = Field("", max_length=40)
    machine: str = Field("", max_length=LONGEST)
    project: str = Field("", max_length=LONGEST)
    mine: bool = False
    children: bool = False
    start: int = Field(0, ge=0, le=2**53)
    limit: int = Field(100, ge=1, le=500)


class Limits(Body):
    """The most that a run may spend."""

    usd: float | None = Field(None, ge=0, allow_inf_nan=False)
    tokens: int | None = Field(None, ge=0, le=2**53)
    calls: int | None = Field(None, ge=0, le=2**53)
    seconds: float | None = Field(None, ge=0, allow_inf_nan=False)
    transitions: int | None = Field(None, ge=0, le=2**53)

    def budget(self) -> Budget | None:
        """The budget, where anything is limited."""
        chosen = {name: value for name, value in self.model_dump().items() if value is not None}
        return Budget(**chosen) if chosen else None


class NewRun(Body):
    """A run to begin."""

    machine: str = Field(min_length=1, max_length=LONGEST)
    input: Any = None
    model: str = Field("", max_length=LONGEST)
    budget: Limits | None = None
    run_id: str | None = Field(None, pattern=r"^[A-Za-z0-9][A-Za-z0-9-]*$", max_length=128)

    def order(self) -> Order:
        """What a person has chosen."""
        return Order(self.machine, self.input, self.model, self.budget.budget() if self.budget else None, self.run_id)


class Answer(Body):
    """An answer to a question of a run."""

    value: Any = None
    question: str | None = Field(None, max_length=LONGEST)


class Reason(Body):
    """Why something is done."""

    reason: str = Field("asked for at the page", max_length=2000)


class Again(Body):
    """How a run is tried again."""

    budget: Limits | None = None


class NewFork(Body):
    """Where another run goes its own way."""

    at: int | None = Field(None, ge=0, le=2**53)
    repeats: bool = False


class Line(Body):
    """What a person typed."""

    text: str = Field(min_length=1, max_length=100_000)


class Told(Body):
    """An event of a machine's vocabulary."""

    event: str = Field(min_length=1, max_length=LONGEST)
    data: Any = None


class Text(Body):
    """The text of a file that is to be checked."""

    text: str = Field(max_length=900_000)
    name: str = Field("draft.json", max_length=100)


def plain(value: Any, status: int = 200) -> Response:
    """A value as JSON, without secrets."""
    body = _dumped(cleaner()(encode(value)))
    return Response(body, status, {"cache-control": "no-store"}, "application/json")


NAMES: dict[type[Any], bytes] = {Summary: b"stands", Speech: b"speech", Gap: b"gap", Over: b"over"}


def frame(item: FeedItem) -> bytes:
    """Something that happened, as a server-sent event. The id of a step is its number in the journal.

    What a step does not have is left out.
    """
    if isinstance(item, Step):
        told = {name: value for name, value in vars(item).items() if value or name == "seq"}
        return b"id: %d\nevent: step\ndata: %b\n\n" % (item.seq, _dumped(told))
    return b"event: %b\ndata: %b\n\n" % (NAMES[type(item)], _dumped(encode(item)))


def _dumped(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)


def hosting(request: Request) -> Hosting:
    """What the routes have behind them."""
    found: Hosting = request.app.state.hosting
    return found


def whose(request: Request) -> str:
    """Who is at the page."""
    return str(request.scope["person"].name)


@router.get("/me", summary="Who is at the page, and what may be done", responses=REFUSALS)
async def me(request: Request) -> Response:
    held = hosting(request)
    return plain(
        {"name": whose(request), "read_only": held.read_only, "store": held.hall.address, "version": held.version}
    )


@router.get("/runs", summary="Runs, the newest first", responses=REFUSALS)
async def runs(request: Request, wish: Annotated[Wishes, Query()]) -> Response:
    waiting_for = whose(request) if wish.mine else None
    chosen = Wish(wish.search, wish.status, wish.machine, wish.project, waiting_for, wish.children)
    return plain(await listing(hosting(request).hall.store, chosen, wish.start, wish.limit))


@router.post("/runs", status_code=201, summary="Begin a run", responses=REFUSALS)
async def begin(request: Request, order: NewRun) -> Response:
    held = hosting(request)
    return plain({"run": await start(held.hall, order.order(), held.folder)}, 201)


@router.post("/preview", summary="What to know before a run begins", responses=REFUSALS)
async def previewed(request: Request, order: NewRun) -> Response:
    held = hosting(request)
    return plain(await preview(held.hall, order.order(), held.folder))


@router.get("/runs/{run}", summary="How a run stands", responses=REFUSALS)
async def run_detail(request: Request, run: RunName) -> Response:
    return plain(await hosting(request).looking.detail(run))


@router.get("/runs/{run}/steps", summary="A window of a run's steps", responses=REFUSALS)
async def run_steps(
    request: Request,
    run: RunName,
    start: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Response:
    held = hosting(request)
    stored = await held.hall.store.load(run)
    return plain({"total": stored.seq + 1, "steps": await held.looking.steps(run, start, limit)})


@router.get("/runs/{run}/steps/{seq}", summary="One step, whole, with its entry in the journal", responses=REFUSALS)
async def run_step(request: Request, run: RunName, seq: Number) -> Response:
    step, entry, again = await hosting(request).looking.step(run, seq)
    return plain({"step": step, "entry": entry, "again": again})


@router.get("/runs/{run}/at/{seq}", summary="Where a run stood after a step", responses=REFUSALS)
async def run_moment(request: Request, run: RunName, seq: Number) -> Response:
    return plain(await hosting(request).looking.moment(run, seq))


@router.get("/runs/{run}/figures", summary="Metrics, costs and what its kind adds", responses=REFUSALS)
async def run_figures(request: Request, run: RunName) -> Response:
    return plain(await hosting(request).looking.figures(run))


@router.get("/runs/{run}/picture", summary="The picture of a run's machine", responses=REFUSALS)
async def run_picture(request: Request, run: RunName) -> Response:
    return plain(await hosting(request).looking.picture(run))


@router.get("/runs/{run}/export", summary="A run with its whole journal", responses=REFUSALS)
async def run_export(request: Request, run: RunName) -> Response:
    answer = plain(await export(hosting(request).hall.store, run))
    answer.headers["content-disposition"] = f'attachment; filename="{run}.json"'
    return answer


@router.get("/runs/{run}/report", summary="A run's report as a file", responses=REFUSALS)
async def run_report(
    request: Request, run: RunName, format: Annotated[str, Query(pattern=f"^({'|'.join(FORMATS)})$")] = "html"
) -> Response:
    text = await report(hosting(request).hall.store, run, format)
    headers = {"content-disposition": f'attachment; filename="{run}.{format}"', "cache-control": "no-store"}
    return Response(text, 200, headers, TYPES[format])


@router.get(
    "/runs/{run}/events",
    summary="What happens in a run, as server-sent events; Last-Event-ID is the number of an entry",
    responses={**REFUSALS, 200: {"content": {"text/event-stream": {}}}},
    response_class=StreamingResponse,
)
async def run_events(
    request: Request,
    run: RunName,
    after: Annotated[int, Query(ge=-1, le=2**53)] = -1,
    last_event_id: Annotated[str | None, Header(max_length=20)] = None,
) -> StreamingResponse:
    held = hosting(request)
    await held.hall.store.load(run)
    place = int(last_event_id) if last_event_id and last_event_id.isascii() and last_event_id.isdigit() else after
    return StreamingResponse(_streamed(held, run, place), media_type="text/event-stream", headers=STREAM)


async def _streamed(held: Hosting, run: str, place: int) -> AsyncIterator[bytes]:
    yield b"retry: 500\n\n"
    try:
        async for batch in held.feed.watch(run, place):
            yield batch
    except MoothallError as error:
        yield b"event: trouble\ndata: %b\n\n" % orjson.dumps({"error": cleaner()(str(error))})


@router.post("/runs/{run}/answer", summary="Answer a question", responses=REFUSALS)
async def answer(request: Request, run: RunName, given: Answer) -> Response:
    held = hosting(request)
    return plain({"run": await held.acts.answer(run, given.value, given.question, whose(request))})


@router.post("/runs/{run}/type", summary="Type to a conversation", responses=REFUSALS)
async def type_line(request: Request, run: RunName, line: Line) -> Response:
    return plain({"said": await hosting(request).acts.hear(run, line.text, whose(request))})


@router.post("/runs/{run}/send", summary="Tell a run an event", responses=REFUSALS)
async def send(request: Request, run: RunName, told: Told) -> Response:
    return plain({"run": await hosting(request).acts.send(run, told.event, told.data, whose(request))})


@router.post("/runs/{run}/cancel", summary="Ask a run to stop", responses=REFUSALS)
async def cancel(request: Request, run: RunName, why: Reason) -> Response:
    return plain({"run": await hosting(request).acts.cancel(run, f"{why.reason} ({whose(request)})")})


@router.post("/runs/{run}/resume", summary="Go on with a run", responses=REFUSALS)
async def resume(request: Request, run: RunName) -> Response:
    return plain({"run": await hosting(request).acts.resume(run, whose(request))})


@router.post("/runs/{run}/retry", summary="Go on with a run that ended badly", responses=REFUSALS)
async def retry(request: Request, run: RunName, again: Again) -> Response:
    budget = again.budget.budget() if again.budget else None
    return plain({"run": await hosting(request).acts.retry(run, whose(request), budget)})


@router.post("/runs/{run}/fork", status_code=201, summary="Go another way from a step on", responses=REFUSALS)
async def fork(request: Request, run: RunName, chosen: NewFork) -> Response:
    return plain({"run": await hosting(request).acts.fork(run, chosen.at, repeats=chosen.repeats)}, 201)


@router.get("/inbox", summary="Everything that waits for a person", responses=REFUSALS)
async def waiting(request: Request, mine: bool = False) -> Response:
    return plain(await inbox(hosting(request).hall.store, whose(request) if mine else None))


@router.get("/compare", summary="Two runs side by side", responses=REFUSALS)
async def compared(
    request: Request,
    left: Annotated[str, Query(pattern=RUN, max_length=LONGEST)],
    right: Annotated[str, Query(pattern=RUN, max_length=LONGEST)],
) -> Response:
    return plain(await compare(hosting(request).looking, left, right))


@router.get("/machines", summary="What can be started from here", responses=REFUSALS)
async def machines(request: Request) -> Response:
    return plain({"machines": await offers(hosting(request).hall.store), "models": models()})


@router.get("/form", summary="What a machine is given, as JSON Schema", responses=REFUSALS)
async def form(request: Request, machine: Annotated[str, Query(min_length=1, max_length=LONGEST)]) -> Response:
    held = hosting(request)
    return plain(await form_of(held.hall, machine, held.folder))


@router.get("/metrics", summary="The figures of all runs", responses=REFUSALS)
async def metrics(request: Request) -> Response:
    return plain(await hosting(request).looking.overview())


@router.post("/check", summary="Check a workflow file", responses=REFUSALS)
async def check(request: Request, given: Text) -> Response:
    return plain(await hosting(request).aside(lambda: check_draft(given.text, given.name)))
