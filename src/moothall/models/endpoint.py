"""Where a model of a provider is asked."""

from __future__ import annotations

from typing import Literal

from moothall.kernel.frozen import Frozen

Protocol = Literal["openai", "anthropic", "google"]
NO_KEY = "none"
"""What the SDKs are told, which insist on a key; it never leaves."""


class Endpoint(Frozen):
    """Which model is asked, where, with which key, and for how long at most."""

    protocol: Protocol
    model: str
    address: str
    is_own: bool = True
    """Whether the address is the one of the company whose protocol it is."""
    key: str = ""
    key_name: str = ""
    timeout: float = 300.0

    def __repr__(self) -> str:
        return f"{self.protocol}:{self.model}@{self.address}"
