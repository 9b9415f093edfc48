"""Rows on the terminal: a table for people, one JSON object per line for programs.

Spark makes the JSON, thins the rows out and counts all of them, in one pass; only the rows that are shown come to Python.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from millstream.connectors.print.counting import counted, with_counter
from millstream.connectors.print.terminal import show
from millstream.plan.components import Epoch, Guarantee, Sink, Staged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TIME = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
_PLACE_BITS = (1 << 33) - 1


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
    guarantee: ClassVar[Guarantee] = "at_least_once"

    sample_every: int = Field(default=1, ge=1)
    """Show one row in so many."""
    limit: int = Field(default=20, ge=1)
    """The most rows of an epoch that a terminal shows. A pipe gets all of them."""

    def stage(self, frame: DataFrame, epoch: Epoch) -> Staged:
        from pyspark.sql import functions as F

        options = {"ignoreNullFields": "false", "timestampFormat": _TIME}
        text = F.to_json(F.struct(*[F.col(_quoted(name)).alias(name) for name in frame.columns]), options)
        # the lower bits of this id count the rows of a partition
        place = F.monotonically_increasing_id().bitwiseAND(F.lit(_PLACE_BITS))
        numbered = with_counter(frame).select(text.alias("row"), place.alias("place"))
        shown = numbered.where(F.col("place") % self.sample_every == 0)
        if sys.stdout.isatty():
            shown = shown.where(F.col("place") < self.sample_every * self.limit)
        lines = shown.select("row")
        collected = lines.toArrow()["row"].to_pylist()
        return Staged(counted(lines), tuple(collected))

    def commit(self, staged: Staged, epoch: Epoch) -> None:
        if not staged.payload:
            return
        try:
            show(staged.payload, staged.rows or 0, self.limit, epoch)
        except BrokenPipeError:  # the reader has gone; the pipeline's other sinks have not
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
