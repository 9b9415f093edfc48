"""The policy for rejects: a row that a node cannot handle stops the pipeline, is dropped and counted, or goes to a sink."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class DeadLetter(BaseModel):
    """Send such rows to a sink."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dead_letter: str
    """The sink's name."""


OnError = Literal["fail", "drop"] | DeadLetter


def dead_letter_sink_of(outcome: OnError | None) -> str | None:
    """The dead-letter sink, if the policy has one."""
    return outcome.dead_letter if isinstance(outcome, DeadLetter) else None
