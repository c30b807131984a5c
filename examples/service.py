"""The offers of approval.py as a web service: start one, look at it, answer its question, follow it as it goes.

    uvicorn --app-dir examples service:app        (pip install "moothall[web]")
"""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Header, Request
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel

sys.path.insert(0, str(Path(__file__).parent))

from approval import OFFER, Offer
from moothall import Moothall, Refused


class NewOffer(BaseModel):
    customer: str


class Answer(BaseModel):
    value: bool
    question: str | None = None


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with Moothall() as hall:  # one for all requests: one store, settings read once
        app.state.hall = hall
        yield


app = FastAPI(title="Offers", lifespan=lifespan)


@app.exception_handler(Refused)
async def refused(request: Request, error: Refused) -> JSONResponse:
    return JSONResponse({"refused": str(error)}, status_code=409)


@app.post("/offers", status_code=201)
async def start(offer: NewOffer, request: Request) -> dict[str, str]:
    return {"run": await request.app.state.hall.start(OFFER, Offer(offer.customer))}


@app.get("/offers/{run}")
async def status(run: str, request: Request) -> dict[str, Any]:
    shown = (await request.app.state.hall.show(run)).summary
    return {"run": run, "status": shown.status, "states": shown.states, "questions": shown.questions}


@app.post("/offers/{run}/answer")
async def answer(run: str, given: Answer, request: Request) -> dict[str, Any]:
    outcome = await request.app.state.hall.answer(run, given.value, question=given.question)
    return {"run": run, "status": outcome.status, "states": outcome.states, "result": outcome.result}


@app.get("/offers/{run}/events")
async def events(run: str, request: Request, last_event_id: int = Header(default=-1)) -> StreamingResponse:
    hall = request.app.state.hall
    await hall.show(run)  # a run that is not there is refused before the stream begins

    async def stream() -> AsyncIterator[str]:
        async for news in hall.watch(run, start=last_event_id + 1):
            if isinstance(news, dict):  # an entry of the journal; its number is where a reader goes on
                yield f"id: {news['seq']}\nevent: entry\ndata: {json.dumps(news)}\n\n"
            else:  # a piece of what an agent is saying
                yield f"event: said\ndata: {json.dumps({'agent': news.agent, 'piece': news.piece})}\n\n"

    return StreamingResponse(stream(), media_type="text/event-stream")


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app, host="127.0.0.1", port=8000)
