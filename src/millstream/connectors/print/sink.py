"""Rows on the terminal: a table for people, one JSON object per line for programs.

Spark makes the JSON, thins the rows out and counts all of them, in one pass; only the rows that are shown come to Python.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from millstream.connectors.print.terminal import show
from millstream.plan.components import Epoch, Guarantee, Sink, Staged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROW = """to_json(struct(*), map('ignoreNullFields', 'false', 'timestampFormat', "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX")) AS row"""
# the lower 33 bits of this id count the rows of a partition
_PLACE = f"monotonically_increasing_id() & {(1 << 33) - 1}L AS place"


class PrintSink(Sink):
    """Shows rows: as a table when a person looks at them, as one JSON object per line when the output goes to a file or a program. An
    epoch that is repeated after a crash is shown again.
    """

    type: ClassVar[str] = "print"
    summary: ClassVar[str] = "Show rows: a table on a terminal, JSON lines in a pipe."
    example: ClassVar[str] = """
        screen:
          type: print
          from: orders
          sample_every: 100
    """
    best: ClassVar[Guarantee] = "at_least_once"
    holds_ledger: ClassVar[bool] = False

    sample_every: int = Field(default=1, ge=1)
    """Show one row in so many."""
    limit: int = Field(default=20, ge=1)
    """The most rows of an epoch that a terminal shows. A pipe gets all of them."""

    def stage(self, frame: DataFrame, epoch: Epoch) -> Staged:
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        counted = Observation()
        numbered = frame.observe(counted, F.count(F.lit(1)).alias("rows")).selectExpr(_ROW, _PLACE)
        shown = numbered.where(f"place % {self.sample_every} = 0")
        if sys.stdout.isatty():
            shown = shown.where(f"place < {self.sample_every * self.limit}")
        lines = shown.select("row").toArrow()["row"].to_pylist()
        return Staged(int(counted.get["rows"]), tuple(lines))

    def commit(self, staged: Staged, epoch: Epoch) -> None:
        if not staged.payload:
            return
        try:
            show(staged.payload, staged.rows or 0, self.limit, epoch)
        except BrokenPipeError:  # the reader has gone; the pipeline's other sinks have not
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
