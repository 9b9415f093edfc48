"""Late rows: rows that arrived after their result had closed. They are searched for only in epochs in which Spark dropped something.

Spark's counter counts groups after aggregation. Here the epoch's rows are read again at the node's input. A row is late if its first result
closed at or before the watermark of Spark's operator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from millstream.engine.lowering.nodes import REJECT_TYPE, input_alias
from millstream.engine.time.operators import Operators, as_batch
from millstream.errors import Diagnostic, RunError
from millstream.plan.components import REJECT, Windowed
from millstream.plan.cutting import QueryPlan
from millstream.plan.nodes import AnyNode, TransformNode


@dataclass
class Lateness:
    """The late rows of one epoch. Use it only after the epoch's rows have been read."""

    plan: QueryPlan
    epoch: DataFrame
    operators: Operators
    _counts: dict[str, int] = field(default_factory=dict)

    @cached_property
    def watermark_ms(self) -> int | None:
        """The watermark of this epoch; None when no row was late."""
        return max((dropped.watermark_ms for dropped in self.operators.dropped()), default=None)

    def rejects(self, node: AnyNode) -> DataFrame | None:
        """A node's late rows, as rejects; None when there are none."""
        parts = list(self._parts(node)) if self.watermark_ms is not None else []
        return reduce(DataFrame.unionByName, parts) if parts else None

    def counts(self) -> Mapping[str, int]:
        """Late rows by node."""
        for node in self.plan.reporting_late:
            if node.name in self._counts or self.watermark_ms is None:
                continue
            rejects = self.rejects(node)
            groups = sum(dropped.groups for dropped in self.operators.dropped())
            self._counts[node.name] = rejects.count() if rejects is not None else groups
        return self._counts

    def refuse(self) -> None:
        """Raise where `late` is `fail` and there is a late row."""
        for node in self.plan.reporting_late:
            if node.late == "fail" and self.counts().get(node.name):
                raise RunError(self._refusal(node, self._counts[node.name]))

    def _parts(self, node: AnyNode) -> Iterator[DataFrame]:
        assert isinstance(node.component, Windowed)
        for name in node.inputs:
            closes = node.component.closes(name, self.plan.event_time_of(name))
            rows = self.operators.rows(input_alias(node.name, name), self.epoch) if closes else None
            if rows is not None:
                yield self._late(node, rows, closes)

    def _late(self, node: AnyNode, rows: DataFrame, closes: str) -> DataFrame:
        watermark = F.timestamp_millis(F.lit(self.watermark_ms))
        raw = F.to_json(F.struct(*[f"`{name}`" for name in rows.columns]), {"ignoreNullFields": "false"})
        error = F.concat(F.lit("late: it belongs to what closed at "), F.expr(closes).cast("string"), F.lit(self._watermark_text()))
        struct = F.struct(F.lit(node.name).alias("node"), raw.alias("raw"), error.alias("error"))
        return as_batch(rows.where(F.expr(closes) <= watermark).select(struct.cast(REJECT_TYPE).alias(REJECT)))

    def _watermark_text(self) -> str:
        return f", and the watermark was {_format_time(self.watermark_ms or 0)}"

    def _refusal(self, node: TransformNode, count: int) -> Diagnostic:
        rejects = self.rejects(node)
        example = rejects.select(f"{REJECT}.raw", f"{REJECT}.error").first() if rejects is not None else None
        detail = f"row: {example[0][:300]}\n{example[1]}" if example else ""
        help_ = "a longer `watermark` or `allowed_lateness` waits for them; `late: drop` or `{dead_letter: SINK}` lets the others pass"
        message = f"`{node.name}`: {count} row{'s' if count > 1 else ''} came too late"
        return Diagnostic("MS071", message, node.place("late"), detail=detail, help=help_)


def _format_time(ms: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
