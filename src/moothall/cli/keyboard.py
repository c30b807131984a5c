"""The keyboard: what a person types at a terminal, one answer at a time.

A paste is one answer, however many lines it has. A terminal that does not mark a paste sends its lines in one burst:
that is one answer too. What was typed before a question was shown does not answer it: it is thrown away, and told.
When a command that asks has ended, nothing that was typed is left to the shell.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from moothall.cli.screen import is_able, notice, shorten

if TYPE_CHECKING:
    from prompt_toolkit.input import Input
    from prompt_toolkit.key_binding import KeyBindings

BURST = 0.02
"""Seconds in which the next line of a burst comes."""


def is_at_terminal() -> bool:
    """Whether a person sits there who can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


async def read_answer(prompt: str) -> str:
    """What the person answers; nothing where the line is empty or the input has ended. Ctrl-C is an interrupt."""
    if is_able(sys.stderr):
        return (await _edit_answer(prompt)).strip()
    print(prompt, end="", file=sys.stderr, flush=True)
    with plain_interrupts():
        return read_burst().strip()


def discard_typed() -> None:
    """Throw away what was typed and not read, and say so."""
    text = _drain() if is_at_terminal() else ""
    if text.strip():
        notice(f"not used, because it was typed before it was asked for: {shorten(text)}")


def _drain() -> str:
    """What waits to be read, also of a line that is not whole."""
    import termios  # it exists only where terminals do
    import tty

    descriptor, typed = sys.stdin.fileno(), b""
    try:
        before = termios.tcgetattr(descriptor)
        tty.setcbreak(descriptor, termios.TCSANOW)
    except termios.error:  # the terminal has gone
        return ""
    try:
        while _is_waiting(descriptor, 0) and (piece := os.read(descriptor, 4096)):
            typed += piece
    except OSError:
        pass
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, before)
    return typed.decode(errors="replace")


def _is_waiting(descriptor: int, seconds: float) -> bool:
    return bool(select.select([descriptor], [], [], seconds)[0])


def read_burst() -> str:
    """A line of a terminal in its own mode, with those that come at once behind it; "" where the input has ended."""
    text = sys.stdin.readline()
    while text and _is_waiting(sys.stdin.fileno(), BURST) and (line := sys.stdin.readline()):
        text += line
    return text


async def _edit_answer(prompt: str) -> str:
    from prompt_toolkit import PromptSession  # most commands ask nothing, and it takes a while to load
    from prompt_toolkit.input.typeahead import clear_typeahead
    from prompt_toolkit.input.vt100 import Vt100Input
    from prompt_toolkit.output.vt100 import Vt100_Output

    # The real stream: what the editor writes must not be cleaned, and what is written in it is the person's own. It
    # does not ask where the cursor is: an answer that comes too late would be read by the shell.
    assert sys.__stderr__ is not None
    output = Vt100_Output.from_pty(sys.__stderr__, term=os.environ.get("TERM"))
    output.enable_cpr = False
    source = Vt100Input(sys.stdin)
    session: PromptSession[str] = PromptSession(
        input=source,
        output=output,
        key_bindings=_burst_bindings(source),
        enable_suspend=True,
        include_default_pygments_style=False,
    )
    try:
        with source.raw_mode():  # whoever has seen the prompt may press any key
            print(prompt, file=sys.stderr, flush=True)
            return await session.prompt_async("> ")
    except EOFError:
        return ""
    finally:
        clear_typeahead(source)


def _burst_bindings(source: Input) -> KeyBindings:
    """Enter ends an answer, unless more came with it: then it is a paste of several lines that nobody has marked."""
    from prompt_toolkit.application import get_app
    from prompt_toolkit.filters import Condition
    from prompt_toolkit.key_binding import KeyBindings

    @Condition
    def is_in_burst() -> bool:
        return bool(get_app().key_processor.input_queue) or _is_waiting(source.fileno(), BURST)

    bindings = KeyBindings()

    @bindings.add("enter", filter=is_in_burst)
    def _(event: Any) -> None:
        event.current_buffer.insert_text("\n")

    return bindings


@contextmanager
def plain_interrupts() -> Iterator[None]:
    """Meanwhile Ctrl-C ends whatever is waited for, as where no loop runs: a terminal is read in place."""
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
