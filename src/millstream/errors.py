"""Diagnostics: what went wrong, where, and how to fix it.

Every user mistake becomes a `Diagnostic`: one sentence, a place, a fix and a code that never changes its meaning
(`millstream explain MS012`). Diagnostics are collected, shown together, and raised in one exception.

    MillstreamError
    ├── UsageError      the command line            exit 2
    ├── SpecError       the pipeline as written     exit 78
    ├── SetupError      Java, jars, extras          exit 78
    ├── RunError        the pipeline stopped        exit 1
    │   └── TemporaryError   may work later         exit 75
    └── BugError        ours                        exit 70
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, ClassVar, Literal


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a file: line and column count from 1, `end` is the first column after it."""

    file: str
    line: int
    column: int
    end: int
    text: str = ""
    """The line as written, kept here so that showing it needs no file."""


_WIDEST = 120
"""The most characters of a line that are shown."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem. The message is complete by itself; `detail` and `help` are further lines."""

    code: str
    message: str
    span: Span | None = None
    level: Literal["error", "warning"] = "error"
    detail: str = ""
    help: str = ""
    node: str = ""
    """The node that it concerns; empty when it concerns the pipeline."""
    cause: str = ""
    """The cause: the input, sink or function that a finding concerns, or Spark's name of the error."""

    def at(self, span: Span | None, node: str) -> Diagnostic:
        """The same with a node's place, unless it already has a place."""
        return replace(self, span=self.span or span, node=self.node or node)

    def render(self) -> str:
        """The plain text that a terminal shows, caret included."""
        lines = [f"{self.level}[{self.code}]: {self.message}", *self._place()]
        lines += [f"  {line}" for line in self.detail.splitlines()]
        if self.help:
            lines.append(f"  = help: {self.help}")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        place = self.span
        return {
            "code": self.code,
            "level": self.level,
            "message": self.message,
            "file": place.file if place else None,
            "line": place.line if place else None,
            "column": place.column if place else None,
            "detail": self.detail or None,
            "help": self.help or None,
            "node": self.node or None,
            "cause": self.cause or None,
        }

    def _place(self) -> list[str]:
        if self.span is None:
            return []
        span, margin = self.span, " " * len(str(self.span.line))
        lines = [f"{margin}--> {span.file}:{span.line}:{span.column}"]
        if span.text:
            text, caret = _excerpt(span)
            lines += [f"{margin} |", f"{span.line} | {text}", f"{margin} | {caret}"]
        return lines


def _excerpt(span: Span) -> tuple[str, str]:
    """The line and its caret; of a long line the part around the caret."""
    start = max(0, span.column - 1 - _WIDEST // 3) if len(span.text) > _WIDEST else 0
    part = span.text[start : start + _WIDEST]
    text = ("…" if start else "") + part + ("…" if start + _WIDEST < len(span.text) else "")
    before = span.column - 1 - start + bool(start)
    return text, " " * before + "^" * max(1, min(span.end - span.column, len(text) - before))


class MillstreamError(Exception):
    """Holds all diagnostics; `exit_code` is the exit code of the command line."""

    exit_code: ClassVar[int] = 1

    def __init__(self, diagnostics: Diagnostic | Iterable[Diagnostic]) -> None:
        self.diagnostics: tuple[Diagnostic, ...] = (diagnostics,) if isinstance(diagnostics, Diagnostic) else tuple(diagnostics)
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        return "\n\n".join(diagnostic.render() for diagnostic in self.diagnostics)


class UsageError(MillstreamError):
    """A mistake on the command line."""

    exit_code: ClassVar[int] = 2


class SpecError(MillstreamError):
    """The pipeline, as written, cannot run."""

    exit_code: ClassVar[int] = 78


class SetupError(MillstreamError):
    """The machine lacks something: Java, a jar, an extra."""

    exit_code: ClassVar[int] = 78


class RunError(MillstreamError):
    """The pipeline stopped; a restart alone will not help."""


class PlanMismatchError(RunError):
    """Spark's plan of a node needs rows of several epochs, which its text did not show. It may be kept up to date instead."""


class NoKeyError(PlanMismatchError):
    """The changes of a result have no key by which its sinks could apply them. With bounded inputs it may be returned once instead."""


class TemporaryError(RunError):
    """A failure of an outside system; a retry may succeed."""

    exit_code: ClassVar[int] = 75


class BugError(MillstreamError):
    """Millstream's own mistake."""

    exit_code: ClassVar[int] = 70


class OptionError(ValueError):
    """An invalid value of an option, with the code of the mistake."""

    code: ClassVar[str] = "MS008"


class SecretError(OptionError):
    """A reference to a secret that cannot be read."""

    code: ClassVar[str] = "MS013"


class FunctionError(OptionError):
    """A reference to a function that cannot be found."""

    code: ClassVar[str] = "MS016"


def nearest(word: str, options: Iterable[str]) -> str:
    """`did you mean …?` for a misspelt word, or the list of known words when none is similar."""
    known: Sequence[str] = sorted(set(options))
    close = get_close_matches(word, known, n=1, cutoff=0.6)
    if close:
        return f"did you mean `{close[0]}`?"
    if not known:
        return ""
    shown = ", ".join(f"`{option}`" for option in known[:12])
    return f"known: {shown}" + (f" and {len(known) - 12} more" if len(known) > 12 else "")
