"""Prints rows: a table for people, one JSON object per line for programs.

Spark makes the JSON, samples the rows and counts all of them, in one pass; only the shown rows are sent to Python.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from millstream.connectors.print.terminal import show
from millstream.plan.components import Epoch, Guarantee, NodeContext, Sink, SinkRun, Staged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROW = """to_json(struct(*), map('ignoreNullFields', 'false', 'timestampFormat', "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX")) AS row"""
# the lower 33 bits of this id count the rows of a partition
_PLACE = f"monotonically_increasing_id() & {(1 << 33) - 1}L AS place"


class PrintSink(Sink):
    """Shows rows: as a table on a terminal, as one JSON object per line when the output goes to a file or a program. The pipeline's
    store records the printed epochs, so a repeated epoch is normally not shown again.
    """

    type: ClassVar[str] = "print"
    summary: ClassVar[str] = "Show rows: a table on a terminal, JSON lines in a pipe."
    commit_method: ClassVar[str] = "rows are printed; the pipeline's store keeps the epoch right after"
    example: ClassVar[str] = """
        screen:
          type: print
          from: orders
          sample_every: 100
    """
    best: ClassVar[Guarantee] = "at_least_once"
    holds_ledger: ClassVar[bool] = False

    sample_every: int = Field(default=1, ge=1)
    """Show one row in this many."""
    limit: int = Field(default=20, ge=1)
    """The most rows of an epoch that a terminal shows. A pipe gets all of them."""

    def open(self, context: NodeContext) -> PrintSinkRun:
        return PrintSinkRun(self, context)


class PrintSinkRun(SinkRun[tuple[str, ...]]):
    """Keeps the lines of an epoch until it is committed."""

    def __init__(self, sink: PrintSink, context: NodeContext) -> None:
        super().__init__(context)
        self.sink = sink

    def stage(self, frame: DataFrame, epoch: Epoch) -> Staged[tuple[str, ...]]:
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        counted, every = Observation(), self.sink.sample_every
        numbered = frame.observe(counted, F.count(F.lit(1)).alias("rows")).selectExpr(_ROW, _PLACE)
        shown = numbered.where(f"place % {every} = 0")
        if sys.stdout.isatty():
            shown = shown.where(f"place < {every * self.sink.limit}")
        lines = shown.select("row").toArrow()["row"].to_pylist()
        return Staged(int(counted.get["rows"]), tuple(lines))

    def commit(self, staged: Staged[tuple[str, ...]], epoch: Epoch) -> None:
        if not staged.work:
            return
        try:
            show(staged.work, staged.rows or 0, self.sink.limit, epoch)
        except BrokenPipeError:  # the reader has closed the pipe; the other sinks continue
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
