"""The protocols that every source, transform and sink follows. One component = one class = one YAML block = one page of docs.

A component is a frozen model of its options. Python code constructs it, YAML names it by its type, and both get the same
checks. Spark appears only inside `read`, `apply`, `stage` and `commit`, which run when the plan does.

Rows that a node cannot handle leave it in the column `REJECT` (raw row and error; null for good rows); the engine tells them apart.
"""

from millstream.plan.components.component import REJECT, Component, Problem
from millstream.plan.components.context import ChangedInput, NodeContext, Progress
from millstream.plan.components.sink import Epoch, Guarantee, LedgerEntry, Sink, Staged, went_back
from millstream.plan.components.source import Source
from millstream.plan.components.transform import OutputMode, Transform, Windowed

__all__ = [
    "REJECT",
    "ChangedInput",
    "Component",
    "Epoch",
    "Guarantee",
    "LedgerEntry",
    "NodeContext",
    "OutputMode",
    "Problem",
    "Progress",
    "Sink",
    "Source",
    "Staged",
    "Transform",
    "Windowed",
    "went_back",
]
