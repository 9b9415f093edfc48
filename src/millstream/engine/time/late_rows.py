"""Late rows: rows that arrived after their result had closed. They are searched for only in epochs in which Spark dropped something.

Spark's counter counts groups after aggregation. Here the epoch's rows are read again at the node's input. A row is late if its first result
closed at or before the watermark of Spark's operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from millstream.engine.lowering.nodes import REJECT_TYPE, input_alias
from millstream.engine.time.operators import Operators, as_batch
from millstream.errors import Diagnostic, RunError
from millstream.plan.components import REJECT, Windowed
from millstream.plan.cutting import QueryPlan
from millstream.plan.error_policy import dead_letter_sink_of
from millstream.plan.nodes import AnyNode, TransformNode
from millstream.sql.analysed.plans import analysed_plan
from millstream.sql.analysed.window_rows import CLOSES, PLACE, ROW, can_follow


def require_findable(plan: QueryPlan, stream: DataFrame) -> None:
    """Refuse a sink for late rows that cannot be found."""
    for node in plan.reporting_late:
        if dead_letter_sink_of(node.late) is None:
            continue
        aliases = [input_alias(node.name, name) for name in node.inputs if not _closes(plan, node, name)]
        if not all(can_follow(analysed_plan(stream), alias) for alias in aliases):
            message = f"late rows of `{node.name}` cannot be isolated: a step between them and their window combines rows, as a join does"
            help_ = "join in a node above, or use `late: drop`"
            raise RunError(Diagnostic("MS036", message, node.place("late"), help=help_, node=node.name))


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
        """A node's late rows, as rejects; None when there are none, or they cannot be found."""
        parts = self._parts(node) if self.watermark_ms is not None else None
        return reduce(DataFrame.unionByName, parts) if parts else None

    def counts(self) -> Mapping[str, int]:
        """Late rows by node. Where they cannot be found, it is the number of rows and results that Spark dropped."""
        for node in self.plan.reporting_late:
            if node.name not in self._counts and self.watermark_ms is not None:
                parts = self._parts(node)
                dropped = sum(each.groups for each in self.operators.dropped())
                self._counts[node.name] = dropped if parts is None else sum(part.count() for part in parts)
        return self._counts

    def refuse(self) -> None:
        """Raise where `late` is `fail` and there is a late row."""
        for node in self.plan.reporting_late:
            if node.late == "fail" and self.counts().get(node.name):
                raise RunError(self._refusal(node, self._counts[node.name]))

    def _parts(self, node: AnyNode) -> list[DataFrame] | None:
        """The late rows of each input; None if those of one input cannot be found."""
        parts = []
        for name in node.inputs:
            alias, closes = input_alias(node.name, name), _closes(self.plan, node, name)
            rows = self.operators.rows(alias, self.epoch) if closes else None
            found = [_closing(rows, closes)] if rows is not None else self.operators.windows(alias, self.epoch)
            if found is None:
                return None
            late = [as_batch(each.where(F.col(CLOSES) <= F.timestamp_millis(F.lit(self.watermark_ms)))) for each in found]
            parts += [self._rejects(node, _first_of_each(late))] if late else []
        return parts

    def _rejects(self, node: AnyNode, late: DataFrame) -> DataFrame:
        raw = F.to_json(F.col(ROW), {"ignoreNullFields": "false"})
        error = F.concat(F.lit("late: it belongs to what closed at "), F.col(CLOSES).cast("string"), F.lit(self._watermark_text()))
        struct = F.struct(F.lit(node.name).alias("node"), raw.alias("raw"), error.alias("error"))
        return late.select(struct.cast(REJECT_TYPE).alias(REJECT))

    def _watermark_text(self) -> str:
        return f", and the watermark was {_format_time(self.watermark_ms or 0)}"

    def _refusal(self, node: TransformNode, count: int) -> Diagnostic:
        parts, rejects = self._parts(node), self.rejects(node)
        example = rejects.select(f"{REJECT}.raw", f"{REJECT}.error").first() if rejects is not None else None
        detail = f"row: {example[0][:300]}\n{example[1]}" if example else ""
        help_ = "a longer `watermark` or `allowed_lateness` waits for them; `late: drop` or `{dead_letter: SINK}` lets the others pass"
        found, dropped = (
            f"{count} row{'s' if count > 1 else ''} came too late",
            f"rows came too late; Spark dropped {count} rows and results",
        )
        message = f"`{node.name}`: {found if parts is not None else dropped}"
        return Diagnostic("MS071", message, node.place("late"), detail=detail, help=help_)


def _closes(plan: QueryPlan, node: AnyNode, name: str) -> str:
    assert isinstance(node.component, Windowed)
    return node.component.closes(name, plan.event_time_of(name))


def _closing(rows: DataFrame, closes: str) -> DataFrame:
    """Rows, each with the time when its first result closes."""
    return rows.select(F.struct(*[f"`{name}`" for name in rows.columns]).alias(ROW), F.expr(closes).alias(CLOSES))


def _first_of_each(late: list[DataFrame]) -> DataFrame:
    """Of the results that a row came too late for, the first."""
    if PLACE not in late[0].columns:
        return late[0]
    both = reduce(DataFrame.union, late)
    return both.groupBy(PLACE).agg(F.min(CLOSES).alias(CLOSES), F.any_value(ROW).alias(ROW))


def _format_time(ms: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
