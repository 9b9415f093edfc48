"""What all operators have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from millstream.engine.incremental.relations import Delta, Step
from millstream.engine.incremental.tracing import Tracing
from millstream.sql.analysed.gate import EpochRows


@dataclass
class Operator:
    """Turns changes of its inputs into changes of its step's rows."""

    step: Step
    append_only: bool
    """Whether it never removes a row."""
    inputs: list[Operator] = field(default_factory=list)
    number: int = 0
    """Its place in the query: state is stored under it."""
    whole_windows: EpochRows | None = None
    """What is known of its rows in an epoch, if all of them are results of windows that closed in it."""

    kind: ClassVar[str]

    def trace(self, tracing: Tracing, deltas: list[Delta]) -> Delta:
        raise NotImplementedError

    @property
    def inputs_read(self) -> str:
        """The inputs below it, as text."""
        return ", ".join(dict.fromkeys(step.input for step in self.step.walk() if step.input))

    @property
    def key(self) -> str:
        """The key by which it works, as text; empty if it works row by row."""
        return ""

    @property
    def stores(self) -> tuple[str, ...]:
        """What it keeps, in words."""
        return ()
