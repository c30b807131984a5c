"""The example with FastAPI, served by a real uvicorn on loopback: start, status, answer, stream."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.process import EXAMPLES, environment


@pytest.fixture
def client(tmp_path: Path) -> Iterator[httpx.Client]:
    """A client of the service, which listens on a socket that it was handed, so that no request comes too early."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        served = ["-m", "uvicorn", "--app-dir", str(EXAMPLES), "--fd", str(listening.fileno()), "service:app"]
        process = subprocess.Popen(
            [sys.executable, *served],
            env=environment(tmp_path),
            pass_fds=[listening.fileno()],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30, trust_env=False) as client:
            yield client
    finally:
        process.terminate()
        said, _ = process.communicate(timeout=30)
        assert b"Traceback" not in said, said.decode()


def events_of(client: httpx.Client, run: str, last: int = -1) -> list[dict[str, Any]]:
    """The entries that the service streams until the run is over or waits for a person."""
    entries = []
    with client.stream("GET", f"/offers/{run}/events", headers={"Last-Event-ID": str(last)}) as answered:
        assert answered.headers["content-type"].startswith("text/event-stream")
        for line in answered.iter_lines():
            if line.startswith("data: "):
                entries.append(json.loads(line.removeprefix("data: ")))
                if entries[-1]["to"] == ["approving"] or "status" in entries[-1]:
                    break
    return entries


def test_an_offer_is_started_followed_answered_and_sent(client: httpx.Client) -> None:
    begun = client.post("/offers", json={"customer": "Ada"})
    assert begun.status_code == 201, begun.text
    run = begun.json()["run"]
    seen = events_of(client, run)
    assert [entry["to"] for entry in seen] == [["writing"], ["approving"]]
    waiting = client.get(f"/offers/{run}").json()
    assert waiting["status"] == "waiting"
    assert waiting["questions"][0]["prompt"] == "Send this? Dear Ada, ten tide tables for 90 euros."
    sent = client.post(f"/offers/{run}/answer", json={"value": True})
    assert sent.json() == {
        "run": run,
        "status": "done",
        "states": ["sent"],
        "result": "Dear Ada, ten tide tables for 90 euros.",
    }
    rest = events_of(client, run, last=seen[-1]["seq"])
    assert [entry["to"] for entry in rest] == [["sending"], ["sent"]]


def test_what_cannot_be_is_refused_with_a_sentence(client: httpx.Client) -> None:
    for missing in (client.get("/offers/nobody"), client.get("/offers/nobody/events")):
        assert missing.status_code == 409
        assert missing.json()["refused"].startswith("there is no run 'nobody' in this store")
    assert client.post("/offers", json={"customer": 7}).status_code == 422
