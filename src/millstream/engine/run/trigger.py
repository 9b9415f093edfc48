"""The trigger: when Spark starts epochs. A value computed from the plan and the settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from millstream.errors import Diagnostic, RunError
from millstream.plan.cutting import QueryPlan
from millstream.plan.nodes import TransformNode
from millstream.plan.settings import AvailableNow, Interval, Settings

_TICK_MS = 1000
"""How often a node that waits for the clock runs, unless `trigger` is set."""
_EMPTY_EPOCHS = "spark.sql.streaming.noDataMicroBatches.enabled"


@dataclass(frozen=True, slots=True)
class Trigger:
    """One query's trigger."""

    interval_ms: int | None
    """None: Spark reads what is there and ends."""
    ends: bool
    """Whether the query ends by itself."""
    waits_for_clock: bool
    """Whether a node waits for the clock: Spark then runs an epoch at every trigger."""

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments for Spark's writer."""
        return {"availableNow": True} if self.interval_ms is None else {"processingTime": f"{self.interval_ms} milliseconds"}

    @contextmanager
    def apply(self, spark: SparkSession) -> Iterator[None]:
        """Start a query in the body. A query that ends by itself cannot wait for the clock: Spark would always find work."""
        if not (self.waits_for_clock and self.ends):
            yield
            return
        before = spark.conf.get(_EMPTY_EPOCHS)
        spark.conf.set(_EMPTY_EPOCHS, "false")
        try:
            yield
        finally:
            spark.conf.set(_EMPTY_EPOCHS, before or "true")


def trigger_of(plan: QueryPlan, settings: Settings, directory: Path) -> Trigger:
    """The trigger of a query. Raises a RunError when its sources cannot end in one query."""
    waits = any(isinstance(node, TransformNode) and node.waits_for_clock(directory) for node in plan.above)
    sources = [node.component for node in plan.sources]
    if plan.bounded:
        ending = [source.available_now for source in sources]
        if any(ending) and not all(ending):
            raise RunError(_no_end(plan))
        return Trigger(None if all(ending) else 0, True, waits)
    if isinstance(settings.trigger, AvailableNow):
        return Trigger(None, True, waits)
    if isinstance(settings.trigger, Interval):
        return Trigger(settings.trigger.every.milliseconds, False, waits)
    least = _TICK_MS if waits else 0
    return Trigger(max(least, min((source.poll_interval_ms for source in sources), default=0)), False, waits)


def _no_end(plan: QueryPlan) -> Diagnostic:
    """One Spark query cannot combine two ways to find its end."""
    several = next(node for node in plan.sources if not node.component.available_now)
    message = f"`{several.name}` gives its rows in several epochs, and shares query `{plan.name}` with a source that ends in another way"
    help_ = "set `rows_per_epoch` to at least `rows`, and leave `rows_per_second` out"
    return Diagnostic("MS036", message, several.span, help=help_)
