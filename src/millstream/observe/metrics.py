"""Metrics of a node: each is one field of `NodeFacts`, with its label and unit.

The report, the live view, the summary and the event log iterate over the metrics, so that a new metric needs no change there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any, Literal

Kind = Literal["source", "transform", "sink"]
Shown = Literal["always", "when known", "when not zero", "never"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric, and how it is shown."""

    name: str
    """The name of the field, and the key in the report."""
    label: str
    """The heading in the live view."""
    unit: str
    """The unit of the count, in the singular: `row`, `epoch`."""
    report: Shown
    """When the report has the metric."""
    column: Shown
    """When the live view has a column for the metric: `always`, or when the condition is true for any node."""
    phrase: Mapping[Kind, str]
    """Kind of node → the phrase in the summary, in which `{}` is the count with its unit."""
    total: Mapping[Kind, str]
    """Kind of node → the name of the total in the event log."""
    usually_zero: bool
    """Whether the default is 0 and not None: then the summary leaves out a 0."""
    warning: bool
    """Whether the event log writes a warning when the value grows."""

    def value(self, facts: Any) -> Any:
        return getattr(facts, self.name)

    def is_shown(self, facts: Any, when: Shown) -> bool:
        value = self.value(facts)
        return when == "always" or (when == "when known" and value is not None) or (when == "when not zero" and bool(value))

    def text(self, facts: Any) -> str:
        """The value as text for the live view; empty when it is unknown."""
        value = self.value(facts)
        return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)

    def summary(self, facts: Any) -> str:
        """The phrase in the summary; empty when the value is unknown or not worth a phrase."""
        phrase, value = self.phrase.get(facts.kind, ""), self.value(facts)
        if not phrase or value is None or (self.usually_zero and not value) or str(value) == "":
            return ""
        return phrase.format(plural(value, self.unit) if isinstance(value, int) else value)

    def plain(self, facts: Any) -> object:
        """The value as plain data, for the report."""
        value = self.value(facts)
        if isinstance(value, Mapping):
            return dict(value)
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
    """A field that is a metric. A phrase or total without a kind of node applies to all kinds."""
    shown = {"label": label, "unit": unit, "report": report, "column": column, "warning": warning, "usually_zero": default == 0}
    return field(default=default, metadata={"metric": shown | {"phrase": _by_kind(phrase), "total": _by_kind(total)}})


def metrics_of(facts: type) -> Iterator[Metric]:
    """The metrics in a class of facts, in the order of its fields."""
    for each in fields(facts):
        if "metric" in each.metadata:
            yield Metric(each.name, **each.metadata["metric"])


def plural(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _by_kind(text: str | Mapping[Kind, str]) -> Mapping[Kind, str]:
    kinds: tuple[Kind, ...] = ("source", "transform", "sink")
    return dict.fromkeys(kinds, text) if isinstance(text, str) else text
