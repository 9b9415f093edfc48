"""Rows that came after their result had closed: found one by one, in the epochs in which Spark dropped something.

Spark's own counter counts groups, after rows have been added up. Here the epoch's rows are read again at the node's input, and those are
late whose first result closed at or before the watermark that Spark's operator went by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from millstream.engine.lowering import REJECT_TYPE, input_alias
from millstream.engine.operators import Operators, as_batch
from millstream.errors import Diagnostic, RunError
from millstream.plan.components import REJECT, Windowed
from millstream.plan.cutting import QueryPlan
from millstream.plan.nodes import Node


@dataclass
class Lateness:
    """The late rows of one epoch. To be asked once the epoch's rows have been read."""

    plan: QueryPlan
    epoch: DataFrame
    operators: Operators
    _counts: dict[str, int] = field(default_factory=dict)

    @cached_property
    def watermark_ms(self) -> int | None:
        """The watermark that rows were judged by; None when none was late."""
        return max((dropped.watermark_ms for dropped in self.operators.dropped()), default=None)

    def rejects(self, node: Node) -> DataFrame | None:
        """A node's late rows, as dead letters are made of; None when there are none."""
        parts = list(self._parts(node)) if self.watermark_ms is not None else []
        return reduce(DataFrame.unionByName, parts) if parts else None

    def counts(self) -> Mapping[str, int]:
        """Late rows by node."""
        for node in self.plan.timely:
            if node.name in self._counts or self.watermark_ms is None:
                continue
            rejects = self.rejects(node)
            groups = sum(dropped.groups for dropped in self.operators.dropped())
            self._counts[node.name] = rejects.count() if rejects is not None else groups
        return self._counts

    def refuse(self) -> None:
        """Stop where the user wants no late row."""
        for node in self.plan.timely:
            if node.late == "fail" and self.counts().get(node.name):
                raise RunError(self._refusal(node, self._counts[node.name]))

    def _parts(self, node: Node) -> Iterator[DataFrame]:
        assert isinstance(node.component, Windowed)
        for name in node.inputs:
            closes = node.component.closes(name, self.plan.event_time_of(name))
            rows = self.operators.rows(input_alias(node.name, name), self.epoch) if closes else None
            if rows is not None:
                yield self._late(node, rows, closes)

    def _late(self, node: Node, rows: DataFrame, closes: str) -> DataFrame:
        watermark = F.timestamp_millis(F.lit(self.watermark_ms))
        raw = F.to_json(F.struct(*[f"`{name}`" for name in rows.columns]), {"ignoreNullFields": "false"})
        error = F.concat(F.lit("late: it belongs to what closed at "), F.expr(closes).cast("string"), F.lit(self._told()))
        struct = F.struct(F.lit(node.name).alias("node"), raw.alias("raw"), error.alias("error"))
        return as_batch(rows.where(F.expr(closes) <= watermark).select(struct.cast(REJECT_TYPE).alias(REJECT)))

    def _told(self) -> str:
        return f", and the watermark was {_shown(self.watermark_ms or 0)}"

    def _refusal(self, node: Node, count: int) -> Diagnostic:
        rejects = self.rejects(node)
        example = rejects.select(f"{REJECT}.raw", f"{REJECT}.error").first() if rejects is not None else None
        detail = f"row: {example[0][:300]}\n{example[1]}" if example else ""
        help_ = "a longer `watermark` or `allowed_lateness` waits for them; `late: drop` or `{dead_letter: SINK}` lets the others pass"
        message = f"`{node.name}`: {count} row{'s' if count > 1 else ''} came too late"
        return Diagnostic("MS071", message, node.place("late"), detail=detail, help=help_)


def _shown(ms: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
