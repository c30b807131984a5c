"""What a person says an effect gave lands in the field of its event that holds it, and the event says whose it is."""

from typing import Any

import pytest

from moothall.agents.ask import AskAgent, CallTool, Replied, Returned
from moothall.kernel.effects import Effect
from moothall.kernel.events import Event
from moothall.machines.arena.effects import SaveWorkspace, WorkspaceSaved
from moothall.machines.team.state import (
    AskPlan,
    CallHooks,
    CheckPlan,
    FactRead,
    FileWritten,
    HooksCalled,
    PlanChecked,
    ReadFact,
    Summarise,
    WriteFile,
)

TOLD = "a person's word"


@pytest.mark.parametrize(
    ("effect", "value", "event"),
    [
        (AskAgent("ada", "?", id="a"), "yes", Replied("ada", "yes", id="a")),
        (AskAgent("ada", "?", shape="V", id="a"), {"x": 1}, Replied("ada", '{"x": 1}', {"x": 1}, "V", id="a")),
        (Summarise("ada", "?"), "in short", Replied("ada", "in short")),
        (AskPlan("ada", "?", id="p"), "a plan", Replied("ada", "a plan", id="p")),
        (CallTool("pay", id="c"), 7, Returned("pay", 7, id="c")),
        (ReadFact("budget", "look"), 90, FactRead("budget", 90, TOLD)),
        (WriteFile("a.txt", "text"), None, FileWritten("a.txt")),
        (CheckPlan({}, id="p"), "plan.json", PlanChecked("plan.json", id="p")),
        (CallHooks(), None, HooksCalled()),
        (SaveWorkspace("here"), "save-1", WorkspaceSaved("save-1")),
    ],
    ids=lambda part: part.kind if isinstance(part, Effect) else "",
)
def test_a_reported_end_is_the_end_that_the_performer_would_have_told(effect: Effect, value: Any, event: Event) -> None:
    assert effect.settled(value) == event
