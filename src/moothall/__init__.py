"""Durable state machines for agents that debate, hand off, approve and act.

Write a machine as a table of states and moves, with your own async functions as agents and tools, and `run` it:
it survives `kill -9`, keeps to its budget, and can be drawn, checked and explained.

The names below are the public ones. Each room is opened when one of its names is first used, so that importing
the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moothall.agents.ask import AskAgent as AskAgent
    from moothall.agents.ask import FormField as FormField
    from moothall.agents.ask import Replied as Replied
    from moothall.agents.ask import Returned as Returned
    from moothall.agents.ask import ToolCall as ToolCall
    from moothall.agents.ask import Unusable as Unusable
    from moothall.agents.ask import Window as Window
    from moothall.agents.ask import YesNo as YesNo
    from moothall.agents.ask import ask as ask
    from moothall.agents.ask import call as call
    from moothall.agents.ask import child as child
    from moothall.agents.ask import days as days
    from moothall.agents.ask import form as form
    from moothall.agents.ask import hours as hours
    from moothall.agents.ask import minutes as minutes
    from moothall.agents.ask import question as question
    from moothall.agents.ask import tool as tool
    from moothall.agents.ask import turn_of as turn_of
    from moothall.agents.ask import yes as yes
    from moothall.agents.ports import Reply as Reply
    from moothall.agents.thread import keep_said as keep_said
    from moothall.agents.thread import said_by as said_by
    from moothall.agents.workspace import Workspace as Workspace
    from moothall.app.runs.moothall import Moothall as Moothall
    from moothall.app.runs.moothall import answer as answer
    from moothall.app.runs.moothall import arun as arun
    from moothall.app.runs.moothall import fork as fork
    from moothall.app.runs.moothall import resume as resume
    from moothall.app.runs.moothall import run as run
    from moothall.app.runs.outcome import Outcome as Outcome
    from moothall.errors import Broken as Broken
    from moothall.errors import Conflict as Conflict
    from moothall.errors import DefinitionError as DefinitionError
    from moothall.errors import EffectFailed as EffectFailed
    from moothall.errors import MoothallError as MoothallError
    from moothall.errors import Refused as Refused
    from moothall.kernel.effects import Alarm as Alarm
    from moothall.kernel.effects import AskPerson as AskPerson
    from moothall.kernel.effects import CancelSend as CancelSend
    from moothall.kernel.effects import Effect as Effect
    from moothall.kernel.effects import ReadRecords as ReadRecords
    from moothall.kernel.effects import Send as Send
    from moothall.kernel.effects import WriteRecords as WriteRecords
    from moothall.kernel.events import Answered as Answered
    from moothall.kernel.events import Cancelled as Cancelled
    from moothall.kernel.events import ChildDone as ChildDone
    from moothall.kernel.events import Conflicted as Conflicted
    from moothall.kernel.events import Done as Done
    from moothall.kernel.events import Event as Event
    from moothall.kernel.events import Exhausted as Exhausted
    from moothall.kernel.events import Expired as Expired
    from moothall.kernel.events import GaveUp as GaveUp
    from moothall.kernel.events import RecordsRead as RecordsRead
    from moothall.kernel.events import RecordsWritten as RecordsWritten
    from moothall.kernel.events import SharedRecord as SharedRecord
    from moothall.kernel.machine import Budget as Budget
    from moothall.kernel.machine import Machine as Machine
    from moothall.kernel.nodes import All as All
    from moothall.kernel.nodes import Final as Final
    from moothall.kernel.nodes import History as History
    from moothall.kernel.nodes import On as On
    from moothall.kernel.nodes import Parallel as Parallel
    from moothall.kernel.nodes import State as State
    from moothall.kernel.nodes import always as always
    from moothall.kernel.nodes import anywhere as anywhere
    from moothall.kernel.nodes import emitting as emitting
    from moothall.kernel.nodes import otherwise as otherwise
    from moothall.kernel.step import Append as Append
    from moothall.kernel.step import In as In
    from moothall.kernel.step import Moment as Moment
    from moothall.kernel.step import Move as Move
    from moothall.performers.processes import Completed as Completed
    from moothall.performers.processes import run_process as run_process

__version__ = "0.1.0"

_ROOMS = {
    "agents.ask": "AskAgent FormField Replied Returned ToolCall Unusable Window YesNo ask call child days form hours "
    "minutes question tool turn_of yes",
    "agents.ports": "Reply",
    "agents.thread": "keep_said said_by",
    "agents.workspace": "Workspace",
    "app.runs.moothall": "Moothall answer arun fork resume run",
    "app.runs.outcome": "Outcome",
    "errors": "Broken Conflict DefinitionError EffectFailed MoothallError Refused",
    "kernel.effects": "Alarm AskPerson CancelSend Effect ReadRecords Send WriteRecords",
    "kernel.events": "Answered Cancelled ChildDone Conflicted Done Event Exhausted Expired GaveUp RecordsRead "
    "RecordsWritten SharedRecord",
    "kernel.machine": "Budget Machine",
    "kernel.nodes": "All Final History On Parallel State always anywhere emitting otherwise",
    "kernel.step": "Append In Moment Move",
    "performers.processes": "Completed run_process",
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names.split()}

__all__ = sorted(_ROOM_OF)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def __getattr__(name: str) -> object:
    if name not in _ROOM_OF:
        raise AttributeError(f"moothall has no public name {name!r}")
    found: object = getattr(import_module(f"moothall.{_ROOM_OF[name]}"), name)
    globals()[name] = found
    return found
