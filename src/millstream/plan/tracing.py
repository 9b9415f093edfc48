"""Traces of single records: a source decides which of its records are traced, and each of them has a `traceparent` (W3C Trace Context).

The context travels in the column `_traceparent`, which stays with its row in every node that returns rows of its input. A node that keeps
state gets its rows without it: there many records become one, and their traces end. Sinks pass it on as a header, or leave it out.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from millstream.plan.options import Expression

TRACED = "_traceparent"
"""The column of traced records; null for the others."""
HEADER = "traceparent"
"""The header in HTTP and Kafka."""
VALID = r"^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}\z"
"""What a `traceparent` looks like."""


class Sampling(BaseModel):
    """Which records of a source are traced."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ratio: float | None = Field(default=None, ge=0, le=1)
    """The share of records that is traced, such as `0.01`. The record's position decides, so that a repeated epoch traces the same."""
    where: Expression | None = None
    """A condition: the records for which it is true are traced. With `ratio`, that share of them."""
    payload: int = Field(default=0, ge=0, le=4000)
    """How many characters of a record, as JSON, its spans show. Default: none."""

    @model_validator(mode="after")
    def _one_rule(self) -> Sampling:
        if self.ratio is None and self.where is None:
            raise ValueError("say which records are traced: `ratio`, `where`, or `trace: always`")
        return self


Trace = Literal["always"] | Sampling


def sampling_of(trace: Trace | None) -> Sampling | None:
    """The rule behind an option."""
    return Sampling(ratio=1.0) if trace == "always" else trace
