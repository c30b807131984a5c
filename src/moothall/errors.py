"""Every error of Moothall, sorted by who has to act.

    MoothallError
    ├── DefinitionError   the author of a machine: it cannot mean what it says
    │   └── BadValue      the caller of a plain function: a value is outside what it may be (also a ValueError)
    ├── Refused           the sender: this run does not take that now
    │   └── Elsewhere     another process drives the run; it goes on there
    ├── EffectFailed      the world: a provider, a tool or a disk did not do its part
    ├── Conflict          two writers: someone else moved the run first; read again
    └── Broken            us: please report it

Each message says who, what, and what to do now.
"""

from __future__ import annotations

from collections.abc import Mapping

LONGEST_WAIT = 86_400.0
"""The longest that anybody may ask to be left alone, in seconds."""
MOST_USED = 2**53
"""The most that anybody may say to have used of something; numbers above it are not exact everywhere."""


def words_of(error: BaseException) -> str:
    """What was raised, in its own words where it has any: an error of somebody else may raise another when asked."""
    try:
        return whole_text(f"{type(error).__name__}: {error}")
    except Exception:
        return type(error).__name__


def place_of(error: BaseException, house: str) -> str:
    """The function, file and line of the author's code in which an error arose; "" where it was in the house's own.

    Of the code that the author's own calls, the innermost place in the same file is named.
    """
    trace, place, file = error.__traceback__, "", ""
    while trace is not None:
        code = trace.tb_frame.f_code
        if not code.co_filename.startswith(house) and file in ("", code.co_filename):
            file, place = code.co_filename, f"{code.co_name}, {code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


class MoothallError(Exception):
    """Any error that Moothall raises on purpose."""


class DefinitionError(MoothallError):
    """A machine, its data or its settings cannot mean what they say; correct the definition."""


class BadValue(DefinitionError, ValueError):
    """A value given to a plain function cannot be used; the message names it and what it may be."""


class Refused(MoothallError):
    """The run does not accept this now; the message says what it does accept."""


class Elsewhere(Refused):
    """Another process drives this run; watch it, or wait until it is let go of."""


class EffectFailed(MoothallError):
    """Something outside did not do its part; trying again may help, where it says so not before `retry_after` seconds.

    `usage` is what the attempt cost all the same; what cannot be counted is left out, as is what is below 0. A `final`
    failure would be the same again. `model` is the one that failed, where a run has several.
    """

    def __init__(
        self, message: str, *, retry_after: float = 0, usage: Mapping[str, float] | None = None, final: bool = False
    ) -> None:
        super().__init__(message)
        self.final = final
        self.model = ""
        self.retry_after = retry_after if 0 <= retry_after < LONGEST_WAIT else LONGEST_WAIT
        self.usage = {whole_text(name): amount for name, amount in (usage or {}).items() if _counts(name, amount)}


def _counts(name: object, amount: object) -> bool:
    return isinstance(name, str) and isinstance(amount, int | float) and 0 <= amount <= MOST_USED


def whole_text(text: str) -> str:
    """A text with a question mark for half a character, which nobody could store or send."""
    return text.encode(errors="replace").decode()


class Conflict(MoothallError):
    """Another writer moved the run first; read it again and decide again."""


class Broken(MoothallError):
    """Moothall itself is at fault or its store was damaged; nothing was changed."""
