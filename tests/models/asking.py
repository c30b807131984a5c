"""Requests and endpoints for tests of models."""

from collections.abc import Callable
from typing import Any

from moothall.agents.ports import Offered, Request
from moothall.models.endpoint import Endpoint, Protocol
from tests.models.loopback import Loopback

PROTOCOLS: tuple[Protocol, ...] = ("openai", "anthropic", "google")
LOOK = Offered(
    "look",
    "Look somewhere.",
    {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
)


def endpoint(protocol: Protocol, served: Loopback, timeout: float = 30.0, key: str = "sk-right") -> Endpoint:
    """The model `m` at a loopback server."""
    address = served.address if protocol == "openai" else served.root
    return Endpoint(protocol, "m", address, False, key, "A_KEY", timeout)


def request(
    schema: dict[str, Any] | None = None,
    messages: tuple[Any, ...] = (),
    tools: tuple[Offered, ...] = (),
    hear: Callable[[str], None] | None = None,
) -> Request:
    """A question of the writer."""
    return Request("writer", "Write about tides", "run.1.0", 1, schema, messages, tools, hear)
