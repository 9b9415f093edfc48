"""The position in a SQL text at which Spark reported a failure. Spark's exceptions contain the statement and the position."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from millstream.engine.failures.text import java_causes


@dataclass(frozen=True, slots=True)
class QueryContext:
    """A part of a statement that was passed to Spark."""

    statement: str
    line: int
    """Counted from 1, as is the column."""
    column: int
    fragment: str

    @property
    def before(self) -> str:
        """The text before it in its line."""
        return self.statement.splitlines()[self.line - 1][: self.column - 1]

    def within(self, text: str) -> tuple[int, int] | None:
        """Line and column in the user's text, which may differ from the statement after this point."""
        lines = text.splitlines()
        if self.line <= len(lines) and lines[self.line - 1].startswith(self.before):
            return self.line, self.column
        if self.fragment and text.count(self.fragment) == 1:
            before = text[: text.index(self.fragment)]
            return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
        return None


def query_context(error: BaseException) -> QueryContext | None:
    """The context of the exception or of one of its causes."""
    seen: BaseException | None = error
    while seen is not None:
        for java in java_causes(_java(seen)):
            with suppress(Exception):  # not every Java exception knows a place, and a JVM that is gone answers nothing
                for context in java.getQueryContext():
                    if found := _read(context):
                        return found
        seen = seen.__cause__
    return None


def _java(error: BaseException) -> Any:
    found = getattr(error, "java_exception", None)
    return found if found is not None else getattr(error, "_origin", None)


def _read(context: Any) -> QueryContext | None:
    text, line, column = context.sqlText(), context.line(), context.startPosition()
    if not (text.isDefined() and line.isDefined() and column.isDefined()):
        return None
    return QueryContext(str(text.get()), int(line.get()), int(column.get()) + 1, str(context.fragment()))
