"""The world outside an order: what was paid and delivered in it stands in a file that nothing but a line is added to.

A payment has no key: whoever pays twice has paid twice. A delivery has one: what comes twice under the same key is
delivered once. Both take a few milliseconds, as things do that are far away.
"""

import json
import os
import time
from collections import Counter
from pathlib import Path

PAUSE = 0.004
CHECKS = ("weight", "size", "address", "customs")
STEPS = (
    "draft",
    "deliver notice",
    "pay deposit",
    "review",
    "check",
    "pay insurance",
    "ask",
    "deliver goods",
    "pay rest",
    "note",
    "deliver receipt",
    "close",
)
PAYMENTS = tuple(step.split()[1] for step in STEPS if step.startswith("pay "))
DELIVERIES = (*(step.split()[1] for step in STEPS if step.startswith("deliver ")), *CHECKS)
HISTORY = Counter([*(step for step in STEPS if step != "check"), *(f"check {what}" for what in CHECKS)])
"""What an order has appended to its own history when it is over, each once."""


def pay(folder, what):
    """Pay something; nobody asks whether it was paid before."""
    _write(folder, "paid", what)


def deliver(folder, what, key):
    """Deliver something under a key."""
    _write(folder, "delivered", what, key)


def think():
    """Do what leaves no trace outside."""
    time.sleep(PAUSE)


def deeds(folder):
    """Everything that was done outside, line by line."""
    file = Path(folder) / "world.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def was_paid(folder, what):
    """Whether something was paid, for a person who looks."""
    return ["paid", what] in deeds(folder)


def _write(folder, *line):
    time.sleep(PAUSE)
    descriptor = os.open(Path(folder) / "world.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, json.dumps(line).encode() + b"\n")
    os.close(descriptor)
    time.sleep(PAUSE)
