"""Counts of rejects per node, as Spark observed metrics of the job that a sink runs anyway. No extra job runs for a count."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from millstream.plan.components import REJECT

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
