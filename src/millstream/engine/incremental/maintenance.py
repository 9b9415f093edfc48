"""Keeps the result of a query's root up to date during a run: state is restored, changed and logged epoch by epoch."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame

from millstream.clients.storage import Storage
from millstream.engine.incremental.arrivals import Feed, arrived
from millstream.engine.incremental.changes import with_ops
from millstream.engine.incremental.log import StateLog
from millstream.engine.incremental.relations import Refused
from millstream.engine.incremental.view import Relate, Version, View
from millstream.engine.incremental.weights import consolidated
from millstream.plan.changelog import OP

_SNAPSHOT_EPOCHS = 50
_SNAPSHOT_BYTES = 64 << 20


class Maintenance:
    """The incremental part of one query."""

    def __init__(
        self,
        node: str,
        stream: DataFrame,
        feeds: Mapping[str, Feed],
        relate: Relate,
        storage: Storage,
        partitions: int,
        *,
        final: bool = False,
    ) -> None:
        self.node = node
        self.view = View(stream.sparkSession, feeds, relate, partitions, final=final)
        self._storage = storage
        self._log: StateLog | None = None
        self.key: tuple[str, ...] | None = None

    def prepare(self, declared: tuple[str, ...], wanted: Iterable[tuple[str, ...]] = ()) -> None:
        """Compile the query. `declared` is the primary key that the user has given the node; `wanted` are the keys of its sinks, of which
        one is chosen if it follows from the query.
        """
        names = self.view.names
        twice = next((name for name in names if names.count(name) > 1), "")
        if twice:
            raise Refused(f"two columns of the result are called `{twice}`; give one of them another name with AS")
        if OP in names and not self.view.final:
            raise Refused(f"a column of the result is called `{OP}`, which is the name of the change itself; give it another name with AS")
        missing = [name for name in declared if name not in names]
        if missing:
            raise Refused(f"the primary key `{missing[0]}` is not a column of the result")
        found = self.view.find_keys()
        known = [frozenset(key) for key in found]
        chosen = next((key for key in wanted if key and _holds_one(key, known) and set(key) <= set(names)), found[0] if found else None)
        self.key = declared or chosen
        self.view.compile(with_ops, self.key, self.node if declared and not _holds_one(declared, known) else "")
        self._log = StateLog(self._storage, self._fingerprint(), self.node)

    def _fingerprint(self) -> str:
        """Identifies the operators and their stores. Spark's column ids and the names that it makes up differ from run to run."""
        view = self.view
        plan = re.sub(r"#\d+L?", "", view.bridge.full_text(view.root_step.plan))
        plan = re.sub(r"\b(_common_expr|lambda \w+?)_\d+", r"\1", re.sub(r"LogicalRDD.*", "LogicalRDD", plan))
        fixed = [str(step.plan.data().toString()) for step in view.root_step.walk() if step.kind == "LocalRelation"]
        operators = [f"{each.number} {each.kind} {each.key}" for each in view.operators]
        text = "\n".join([plan, *fixed, *operators, view.added_schema.simpleString(), *view.stores, str(self.key)])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def log(self) -> StateLog:
        assert self._log is not None
        return self._log

    def step(self, frame: DataFrame, epoch: int, digest: str, *, ends: bool = False) -> DataFrame:
        """The changes of the result in an epoch. If they are written already, they are read back. `ends`: no more rows will come."""
        if epoch - 1 not in self.view.versions:
            self.view.adopt(epoch - 1, self._restored(epoch - 1))
        entry = self.log.entry(epoch, digest)
        if entry is None:
            return self.view.step(epoch, frame, ends=ends)
        rows = self.log.read(self.view.bridge.spark, self.view.added_schema, [entry])
        before = self.view.versions[epoch - 1]
        self.view.versions[epoch] = {name: (*before[name], self.view.hold_store(name, self._rows(rows, name))) for name in self.view.stores}
        return self.view.result_of(self.view.bridge.rdd(self._rows(rows, "")), frame.sparkSession)

    def _rows(self, rows: DataFrame, part: str) -> DataFrame:
        return arrived(rows, self.view.parts, part, self.view.width(part))

    def _restored(self, epoch: int) -> Version:
        """The stores after an epoch, from the newest snapshot and the changes after it."""
        if epoch < 0:
            return self.view.empty_version()
        rows = self.log.read(self.view.bridge.spark, self.view.added_schema, self.log.path_to(epoch))
        return {
            name: (self.view.hold_store(name, consolidated(self.view.named_like(name, self._rows(rows, name)))),)
            for name in self.view.stores
        }

    def write(self, epoch: int, digest: str) -> None:
        """Write the changes of an epoch. Call it when its rows are computed, before a sink commits them."""
        if self.log.entry(epoch, digest) is None:
            self.log.write(epoch, digest, self.view.added(), self.view.columns_of_parts(), self.view.added_bytes())

    def finish(self, epoch: int, digest: str) -> None:
        """All sinks hold the epoch: merge, and write a snapshot when it is due."""
        self.view.finish(epoch)
        if self.log.is_snapshot_due(epoch, _SNAPSHOT_EPOCHS, _SNAPSHOT_BYTES):
            self.log.write_snapshot(epoch, digest, self.view.state(epoch), self.view.columns_of_parts())

    def close(self) -> None:
        self.view.close()


def _holds_one(columns: tuple[str, ...], keys: list[frozenset[str]]) -> bool:
    """Whether columns identify a row because some of them do."""
    return any(key <= frozenset(columns) for key in keys)
