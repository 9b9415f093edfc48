"""What is wrong with a query, and where in its text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from millstream.plan.components import Problem, TextPlace


@dataclass(frozen=True, slots=True)
class SqlFinding:
    """One mistake of a query."""

    code: str
    message: str
    help: str
    place: TextPlace | None
    level: Literal["error", "warning"] = "error"

    def as_problem(self) -> Problem:
        """The finding as a problem of the option `sql`."""
        at = self.place
        where = (at.line, at.column, at.end - at.start) if at is not None else (0, 0, 1)
        return Problem(self.code, self.message, "sql", self.help, self.level, *where)
