"""What doors may know of the floors below: the values that they pass on and show, under one roof."""

from moothall.agents.workspace import Workspace
from moothall.analysis.certify import Certificate, Unbounded
from moothall.drawing.text import draw, printable
from moothall.kernel.codec import encode
from moothall.kernel.machine import Budget, Machine
from moothall.kernel.schema import misfits
from moothall.kernel.step import Absent, Failed, Value
from moothall.runtime.fork import Origin
from moothall.runtime.ports import Audit, Forgotten, Store

__all__ = [
    "Absent",
    "Audit",
    "Budget",
    "Certificate",
    "Failed",
    "Forgotten",
    "Machine",
    "Origin",
    "Store",
    "Unbounded",
    "Value",
    "Workspace",
    "draw",
    "encode",
    "misfits",
    "printable",
]
