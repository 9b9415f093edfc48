"""What happens to a row that a node cannot take: it stops the pipeline, is left out and counted, or goes to a sink."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class DeadLetter(BaseModel):
    """Send such rows to a sink."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dead_letter: str
    """The sink's name."""


OnError = Literal["fail", "drop"] | DeadLetter


def letter_of(outcome: OnError | None) -> str | None:
    """The sink that takes the rows, if one does."""
    return outcome.dead_letter if isinstance(outcome, DeadLetter) else None
