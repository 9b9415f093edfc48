"""Tests that a pipeline carries with it: rows given to sources, rows expected at any node."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict

from millstream.errors import Span

Rows = tuple[dict[str, Any], ...]


class CaseOptions(BaseModel):
    """One entry of `tests:`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """What the test claims."""
    given: dict[str, Rows]
    """Source → its rows."""
    expect: dict[str, Rows]
    """Node → the rows that come out of it, in any order. For a sink: the rows it receives."""
    ordered: bool = False
    """Whether the order of the rows counts."""


@dataclass(frozen=True, slots=True)
class Case:
    """A test with its place in the file."""

    options: CaseOptions
    span: Span | None = field(default=None, compare=False)
