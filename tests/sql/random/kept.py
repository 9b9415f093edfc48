"""The engine as a pipeline uses it: state in a folder, a changelog that is applied by its key, crashes and restarts on the way."""

from __future__ import annotations

import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar
from unittest.mock import patch

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from tests.sql.random.cases import Case, Row, key_of
from tests.sql.random.feeds import arriving, feed_of
from tests.sql.random.oracle import Answer, RefusedError, Rows, WrongError, normal

from millstream.clients.storage import LocalStorage
from millstream.engine.incremental import log, maintenance, view
from millstream.engine.incremental.analysis import Analysis, query_over
from millstream.engine.incremental.maintenance import Maintenance
from millstream.engine.incremental.relations import Refused

WAYS = ("straight", "not written", "written", "restarted", "repeated", "read again", "snapshots", "large")
"""What happens in one epoch of a case: a crash before or after its changes are written, a restart before it, a second attempt in the same
run before or after they are written; or a restart from snapshots, or with everything done as for many rows.
"""

WIDER = 7


class Kept:
    """The result as a table to which the changes of every epoch are applied."""

    final: ClassVar[bool] = False

    def __init__(self, spark: SparkSession, case: Case) -> None:
        self.spark, self.case, self.table = spark, case, Table()
        self.way, self.turn = WAYS[case.seed // 5 % len(WAYS)], case.seed // 40 % max(len(case.epochs), 1)
        with ExitStack() as stack:
            self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            if self.way in {"snapshots", "large"}:
                stack.enter_context(patch.object(maintenance, "_SNAPSHOT_EPOCHS", 2))
            if self.way == "large":
                for module, name in ((log, "_SMALL_BYTES"), (view, "_LARGE_BYTES")):
                    stack.enter_context(patch.object(module, name, -1))
                stack.enter_context(patch.object(view, "_FRAGMENTS", 1))
            self.kept = self._new(2)
            self._open = stack.pop_all()

    def _new(self, partitions: int) -> Maintenance:
        feeds = {table.name: feed_of(table) for table in self.case.tables}
        storage = LocalStorage(self.folder)
        try:
            kept = Maintenance("q", Analysis(self.spark, feeds, query_over(self.case.query)), storage, partitions, final=self.final)
            kept.prepare((), self._wanted(kept))
        except Refused as refused:
            raise RefusedError(refused.reason) from refused
        return kept

    def _wanted(self, kept: Maintenance) -> list[tuple[str, ...]]:
        """One of so many cases has a sink whose key is all columns, which the engine takes if it holds a key."""
        kinds = [str(column.attribute.dataType().catalogString()) for column in kept.view.compilation.root_step.columns]
        return [] if self.case.seed % WIDER or any("map<" in kind for kind in kinds) else [kept.view.names]

    def step(self, epoch: int) -> Answer | None:
        rows, schema = self._run(epoch)
        self.kept.finish(epoch, f"digest {epoch}")
        return self._answer(epoch, rows, schema)

    def _answer(self, epoch: int, rows: list[Row], schema: StructType) -> Answer | None:
        names = schema.names[:-1]
        self.table.apply(rows, None if self.kept.key is None else [names.index(name) for name in self.kept.key])
        return Answer(StructType(schema.fields[:-1]), tuple(self.table.rows()))

    def _run(self, epoch: int) -> tuple[list[Row], StructType]:
        """Compute and write an epoch, in the way of the case."""
        now = epoch == self.turn
        if now and self.way in {"restarted", "snapshots", "large"}:
            self._restart(3 if self.way == "restarted" else 1)
        first = self._compute(epoch)
        if now and self.way == "not written":
            self._restart(2)
        if now and self.way in {"not written", "repeated"}:
            first = self._compute(epoch)
        self.kept.write(epoch, f"digest {epoch}")
        if now and self.way == "written":
            self._restart(3)
        if now and self.way in {"written", "read again"}:
            again = self._compute(epoch)
            self.kept.write(epoch, f"digest {epoch}")  # as a run does: what is written counts as kept and changed
            if Counter(map(repr, map(normal, again[0]))) != Counter(map(repr, map(normal, first[0]))):
                raise WrongError("repeated", f"the repeated epoch has other rows\n  first: {first[0]}\n  again: {again[0]}")
            first = again
        return first

    def _compute(self, epoch: int) -> tuple[list[Row], StructType]:
        frame, ends = arriving(self.spark, self.case, epoch), epoch == len(self.case.epochs) - 1
        out = self.kept.step(frame, epoch, f"digest {epoch}", ends=ends)
        return [tuple(row) for row in out.collect()], out.schema

    def _restart(self, partitions: int) -> None:
        self.kept.close()
        self.kept = self._new(partitions)

    def close(self) -> None:
        self.kept.close()
        self._open.close()


class Ending(Kept):
    """The result at the end alone."""

    final: ClassVar[bool] = True

    def _answer(self, epoch: int, rows: list[Row], schema: StructType) -> Answer | None:
        if epoch == len(self.case.epochs) - 1:
            return Answer(schema, tuple(normal(row) for row in rows), in_order=self.way != "written")
        if rows:
            raise WrongError("early", f"rows before the end: {rows}")
        return None


class Table:
    """What a sink holds."""

    def __init__(self) -> None:
        self._by_key: dict[str, Row] = {}
        self._whole = Rows()

    def apply(self, changes: list[Row], places: list[int] | None) -> None:
        for *values, op in changes:
            if places is None:
                self._apply_whole(tuple(values), op)
            else:
                self._apply_by_key(tuple(values), op, key_of(tuple(values), places))

    def _apply_whole(self, row: Row, op: str) -> None:
        row = normal(row)
        self._whole[row] += {"i": 1, "d": -1}[op]
        if self._whole[row] < 0:
            raise WrongError("negative weight", f"{row} is removed and is not there")

    def _apply_by_key(self, row: Row, op: str, key: str) -> None:
        if (key in self._by_key) != (op != "i"):
            raise WrongError("op", f"`{op}` of {row} does not fit what is there: {self._by_key.get(key)}")
        self._by_key.pop(key, None)
        if op != "d":
            self._by_key[key] = normal(row)

    def rows(self) -> list[Row]:
        return [*self._by_key.values(), *self._whole.elements()]
