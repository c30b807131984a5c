"""A panel behind an address: a server that reads what it is asked, and for each seat says what a test wants.

The seat is the name of the model in a request, what is asked is found in its words. Every request is kept, with its
schema, so that a test can say what went over the wire.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moothall.models.providers import REPLY
from tests.models.loopback import Asked, Fault, Said, Turn, loopback_aside

PROBLEM = "Where should the till keep its sales?"
OPTIONS = ("SQLite", "PostgreSQL", "Redis")
NODES = {
    "Propose a solution": "propose",
    "You review": "critique",
    "Refine your own": "refine",
    "After round": "evaluate",
    "Rank these": "rank",
    "Summarise the debate": "summarise",
    "Write the solution": "synthesise",
}
FAILS = Fault(400, b'{"error": {"message": "no"}}')
"""A refusal that would be the same another time."""


@dataclass(frozen=True)
class Call:
    """A request: to which seat, for what, in what words, with what schema, and what was shown back with it.

    `role` is what the seat is told about itself.
    """

    seat: str
    node: str
    words: str
    schema: dict[str, Any]
    back: str
    role: str = ""

    @property
    def is_repair(self) -> bool:
        """Whether it shows a reply back that could not be used."""
        return bool(self.back)

    def labels(self) -> list[str]:
        """The labels that a critic or a ranking may name."""
        part = self.schema["properties"]
        found = part["reviews"]["items"]["properties"]["label"] if "reviews" in part else part["ranking"]["items"]
        return list(found["enum"])


Speak = Callable[[Call], Any]
"""What is said to a call: a value, which is sent as JSON, a text as it is, or a fault."""


@dataclass
class Debaters:
    """The server's address, what everybody says, and what it was asked."""

    speak: Speak
    address: str = ""
    calls: list[Call] = field(default_factory=list)

    def __call__(self, asked: Asked) -> Turn:
        body = asked.body
        said = [message["content"] for message in body["messages"] if message["role"] == "user"]
        giving = [tool["function"] for tool in body.get("tools", ()) if tool["function"]["name"] == REPLY]
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
        schema = giving[0]["parameters"] if giving else schema
        node = next((node for words, node in NODES.items() if words in said[0]), "")
        role = "\n".join(message["content"] for message in body["messages"] if message["role"] == "system")
        call = Call(body["model"], node, said[0], schema, said[-1] if len(said) > 1 else "", role)
        self.calls.append(call)
        reply = self.speak(call)
        if isinstance(reply, Fault):
            return reply
        text = reply if isinstance(reply, str) else json.dumps(reply)
        return Said(calls=[("c1", REPLY, text)]) if giving else Said(text)

    def of(self, node: str, seat: str = "") -> list[Call]:
        """The requests for something, of one seat or of all."""
        return [call for call in self.calls if call.node == node and seat in ("", call.seat)]

    def configure(self, file: str, seats: Sequence[str], **debate: Any) -> tuple[str, str]:
        """A configuration in which a model of this server plays every seat and the judge."""

        def seat(name: str) -> dict[str, str]:
            return {"id": name, "model": f"openai:{name}@{self.address}"}

        chosen = {"summarization": {"enabled": False}, "retries": 0, **debate}
        plain = {"agents": [seat(name) for name in seats], "judge": seat("judge"), "debate": chosen}
        Path(file).write_text(json.dumps(plain))
        return "-c", file


@contextmanager
def debaters(speak: Speak) -> Iterator[Debaters]:
    """A panel that says this, while the context lasts."""
    panel = Debaters(speak)
    with loopback_aside(panel) as served:
        panel.address = served.address
        yield panel


def closed() -> dict[str, Any]:
    """The question with three options, as a configuration has it."""
    return {"answer": {"type": "choice", "options": list(OPTIONS)}}


def agreeable(call: Call) -> Any:
    """What somebody says who has nothing against anything."""
    match call.node:
        case "propose" | "refine":
            return {"text": f"{call.seat} says {call.node}", "answer": "SQLite", "confidence": 70}
        case "critique":
            return {"reviews": [{"label": label, "text": f"{call.seat} on {label}"} for label in call.labels()]}
        case "rank":
            return {"ranking": call.labels()}
        case "evaluate":
            return {"confidence": 90}
        case _:
            return {"description": "The solution.", "answer": "SQLite", "confidence": 80}
