"""What a command did: its exit code, its results, its notices."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Ran:
    """One command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The result, where it is JSON."""
        return json.loads(self.out)


Moot = Callable[..., Ran]
