"""One kind of problem: what it means and what to do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """What `millstream explain` says."""

    title: str
    why: str
    fix: str
