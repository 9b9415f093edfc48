"""Bad rows by node, counted while a sink's own job reads them: as metrics that Spark observes, so that no job is run for a count."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from millstream.plan.components import REJECT

_PATIENCE = 0.05
"""Seconds until Spark's listeners have heard of a job that is done. One that ran below the level of queries is never told to them."""


class Tally:
    """The counts of one frame, once somebody has read it."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names, self._observation = list(names), Observation()

    def observe(self, frame: DataFrame) -> DataFrame:
        """The same rows; whoever reads all of them counts them."""
        return frame.observe(self._observation, *_counts(self._names))

    def read(self) -> dict[str, int] | None:
        """Node → bad rows; None when Spark has not told."""
        done: Any = self._observation._jo.future()  # type: ignore[union-attr]  # it was attached to a frame
        deadline = time.monotonic() + _PATIENCE
        while not done.isCompleted():
            if time.monotonic() > deadline:
                return None
            time.sleep(0.001)
        return dict(zip(self._names, self._observation.get.values(), strict=True))


def count_bad(frame: DataFrame, names: Sequence[str]) -> dict[str, int]:
    """The same by a job of its own."""
    (row,) = frame.where(F.col(REJECT).isNotNull()).agg(*_counts(names)).collect()
    return dict(zip(names, row, strict=True))


def _counts(names: Sequence[str]) -> list[Any]:
    return [F.count_if(F.col(f"{REJECT}.node") == name).alias(f"n{place}") for place, name in enumerate(names)]
