"""Agents of other libraries: known by where their class comes from, so that no library is loaded to find out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

CLASSES: Mapping[str, str] = {"pydantic_ai": "AbstractAgent", "langchain_core": "Runnable"}
"""The libraries whose agents are taken, and the class that these have."""


class Outside(Protocol):
    """An agent of another library: an Agent of pydantic-ai, a Runnable of LangChain."""

    @property
    def name(self) -> str | None:
        """What it is called, where somebody named it."""
        ...


def library_of(guest: object) -> str:
    """The library whose agent this is; "" where it is none."""
    for kind in type(guest).__mro__:
        library = kind.__module__.partition(".")[0]
        if CLASSES.get(library) == kind.__name__:
            return library
    return ""
