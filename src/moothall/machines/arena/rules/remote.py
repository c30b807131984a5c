"""Rule `remote-code`: code that the plan does not show is run.

Fetched or decoded text reaches an interpreter or `eval`: through a pipe, a substitution, a here-string, or a file that
the same command fetched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from moothall.machines.arena.rules.shell import Trace

ORIGIN = {"fetched": "fetched over the network", "decoded": "decoded from a text that nobody can read"}
POWERSHELL = re.compile(
    r"(?:\biex\b|invoke-expression).*(?:\biwr\b|\birm\b|invoke-webrequest|invoke-restmethod|downloadstring)"
    r"|(?:\biwr\b|\birm\b|invoke-webrequest|invoke-restmethod|downloadstring).*\|\s*(?:iex\b|invoke-expression)",
    re.IGNORECASE | re.DOTALL,
)


def remote_reasons(told: Trace) -> Iterator[str]:
    """Why a shell text runs code that nobody has seen, a sentence for each place."""
    for command in told.commands:
        for origin in sorted(command.runs):
            yield f"{command.name} runs code that was {ORIGIN[origin]}"
    for language, program in told.programs:
        if language == "powershell" and POWERSHELL.search(program.text):
            yield "powershell runs code that was fetched over the network"
