"""Metrics of a node: each is one field of `NodeFacts`, with its label and unit.

Every renderer iterates over them, so that a new metric needs no change in the report, the live view, the summary or the event log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any, Literal

Kind = Literal["source", "transform", "sink"]
Shown = Literal["always", "when known", "when not zero", "never"]


@dataclass(frozen=True, slots=True)
class Metric:
    """How a metric is shown."""

    name: str
    """The field, and the key in the report."""
    label: str
    """The heading in the live view."""
    unit: str
    """What is counted, in the singular: `row`, `epoch`."""
    report: Shown
    """When the report has it."""
    column: Shown
    """When the live view has a column for it; a column that is not always there appears when any node shows it."""
    phrase: Mapping[Kind, str]
    """Kind of node → its part of the summary, where `{}` is the count with its unit."""
    total: Mapping[Kind, str]
    """Kind of node → its name among the totals of the event log."""
    usually_zero: bool
    """Whether zero is not worth a word: its default is 0, and not None."""
    warning: bool
    """Whether the event log tells it as a warning of its own when it grows."""

    def value(self, facts: Any) -> Any:
        return getattr(facts, self.name)

    def is_shown(self, facts: Any, when: Shown) -> bool:
        value = self.value(facts)
        return when == "always" or (when == "when known" and value is not None) or (when == "when not zero" and bool(value))

    def text(self, facts: Any) -> str:
        """The value in a cell; empty where it is unknown."""
        value = self.value(facts)
        return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)

    def sentence(self, facts: Any) -> str:
        """Its part of the summary; empty where there is nothing to tell."""
        phrase, value = self.phrase.get(facts.kind, ""), self.value(facts)
        if not phrase or value is None or (self.usually_zero and not value):
            return ""
        return phrase.format(plural(value, self.unit) if isinstance(value, int) else value)

    def plain(self, facts: Any) -> object:
        """The value as plain data."""
        value = self.value(facts)
        return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def metric(
    default: Any,
    label: str,
    *,
    unit: str = "row",
    report: Shown = "when not zero",
    column: Shown = "never",
    phrase: str | Mapping[Kind, str] = "",
    total: str | Mapping[Kind, str] = "",
    warning: bool = False,
) -> Any:
    """A field that is a metric. A phrase or total without kinds holds for all of them."""
    shown = {"label": label, "unit": unit, "report": report, "column": column, "warning": warning, "usually_zero": default == 0}
    return field(default=default, metadata={"metric": shown | {"phrase": _by_kind(phrase), "total": _by_kind(total)}})


def metrics_of(facts: type) -> Iterator[Metric]:
    """The metrics of a class of facts, in the order of its fields."""
    for each in fields(facts):
        if "metric" in each.metadata:
            yield Metric(each.name, **each.metadata["metric"])


def plural(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _by_kind(text: str | Mapping[Kind, str]) -> Mapping[Kind, str]:
    kinds: tuple[Kind, ...] = ("source", "transform", "sink")
    return dict.fromkeys(kinds, text) if isinstance(text, str) else text
