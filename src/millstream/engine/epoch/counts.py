"""Row counts per node, without a job of their own: from the reports of sinks, and from metrics that Spark observes while a sink reads."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from millstream.engine.lowering.nodes import Lowering
from millstream.observe.recorder import Recorder
from millstream.plan.components import REJECT, CountsLookups
from millstream.plan.cutting import QueryPlan
from millstream.plan.nodes import TransformNode

_PATIENCE = 0.05
"""Seconds to wait until Spark's listeners report a finished job. Jobs below the level of queries are never reported."""


class Tally:
    """The counts of one frame, available after one reader has read it."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names, self._observation = list(names), Observation()

    def observe(self, frame: DataFrame) -> DataFrame:
        """The same rows, with a count that the first full read fills."""
        return frame.observe(self._observation, *_counts(self._names))

    def read(self) -> dict[str, int] | None:
        """Node → rejects; None when Spark has not reported them."""
        done: Any = self._observation._jo.future()  # type: ignore[union-attr]  # it was attached to a frame
        deadline = time.monotonic() + _PATIENCE
        while not done.isCompleted():
            if time.monotonic() > deadline:
                return None
            time.sleep(0.001)
        return dict(zip(self._names, self._observation.get.values(), strict=True))


def count_rejects(frame: DataFrame, names: Sequence[str]) -> dict[str, int]:
    """The same, by a separate job."""
    (row,) = frame.where(F.col(REJECT).isNotNull()).agg(*_counts(names)).collect()
    return dict(zip(names, row, strict=True))


def _counts(names: Sequence[str]) -> list[Any]:
    return [F.count_if(F.col(f"{REJECT}.node") == name).alias(f"n{place}") for place, name in enumerate(names)]


def count_dead_letters(plan: QueryPlan, rows: Mapping[str, int]) -> dict[str, int]:
    """Node → its rejects, where a dead-letter sink that counts them takes rejects from this node alone."""
    found = {}
    for sink in plan.sinks:
        nodes = plan.nodes_rejecting_to(sink)
        if len(nodes) == 1 and sink.name in rows and not plan.late_rows_of(sink):
            found[nodes[0].name] = rows[sink.name]
    return found


def passed_rows(plan: QueryPlan, rows: Mapping[str, int], collapsed: Collection[str]) -> dict[str, int]:
    """Transform → the rows that it returned, where a plain sink received all of them."""
    found = {}
    for sink in plan.sinks:
        special = plan.nodes_rejecting_to(sink) or plan.late_rows_of(sink) or sink.isolates or sink.name in collapsed
        if sink.inputs and not special and sink.name in rows and isinstance(plan.node(sink.inputs[0]), TransformNode):
            found[sink.inputs[0]] = rows[sink.name]
    return found


def record_lookups(plan: QueryPlan, lowering: Lowering, recorder: Recorder) -> None:
    """Record hits and misses that nodes have counted themselves."""
    for node in plan.nodes:
        run = lowering.transform(node) if isinstance(node, TransformNode) else None
        counts = run.take_counts() if isinstance(run, CountsLookups) else None
        if counts is not None:
            recorder.add(node.name, "transform", hits=counts[0], misses=counts[1])
