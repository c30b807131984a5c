"""Whether a machine may be drawn: a picture must not show a part of a secret.

Pictures shorten and break the texts of a table, and nobody would know the parts of a secret again. So the whole texts
are looked at before.
"""

from __future__ import annotations

from moothall.app.config.settings import cleaner
from moothall.drawing.text import action_text
from moothall.kernel.machine import Machine


def secret_in(machine: Machine) -> str:
    """A text in a machine's picture that has a secret, without it; "" where none has."""
    clean, chart = cleaner(), machine.chart
    guards = [row.on.when for row in chart.rows if row.on.when is not None]
    texts = [*(place.name for place in chart.places), *map(action_text, (*machine.actions(), *guards))]
    return next((cleaned for text in texts if (cleaned := clean(text)) != text), "")
