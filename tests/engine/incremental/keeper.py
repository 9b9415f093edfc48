"""A query that is kept up to date, over tables whose changes are lists of rows with a weight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.clients.storage import LocalStorage
from millstream.engine.incremental.analysis import Analysis, query_over
from millstream.engine.incremental.arrivals import Feed, arrivals, of_weights
from millstream.engine.incremental.maintenance import Maintenance

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "k string, v bigint"
Rows = list[tuple[Any, ...]]


class Keeper:
    """One run of the query: a second one over the same folder is a restart."""

    def __init__(
        self,
        spark: SparkSession,
        text: str,
        folder: Path,
        tables: Mapping[str, str] | None = None,
        partitions: int = 2,
        key: tuple[str, ...] = (),
        feeds: Mapping[str, Feed] | None = None,
    ) -> None:
        from pyspark.sql.types import _parse_datatype_string

        self.spark, self.text = spark, text
        schemas = {name: _parse_datatype_string(ddl) for name, ddl in (tables or {"t": SCHEMA}).items()}
        weighted = {name: of_weights(schema) for name, schema in schemas.items()}  # type: ignore[arg-type]  # a struct
        self.feeds: Mapping[str, Feed] = feeds or weighted
        self.kept = Maintenance("q", Analysis(spark, self.feeds, query_over(text)), LocalStorage(folder), partitions)
        self.kept.prepare(key)
        self.result: Counter[tuple[Any, ...]] = Counter()

    def step(self, epoch: int, *, finish: bool = True, time_ms: int = 0, **changes: Rows) -> Rows:
        """Run an epoch: the changes of the result, which are applied to `result`."""
        from tests.sql.random.oracle import frame_of

        frames = {name: frame_of(self.spark, changes.get(name, []), feed.schema) for name, feed in self.feeds.items()}
        rows = [tuple(row) for row in self.kept.step(arrivals(frames), epoch, f"digest {epoch}", time_ms=time_ms).collect()]
        self.kept.write(epoch, f"digest {epoch}")
        if finish:
            self.kept.finish(epoch, f"digest {epoch}")
        return rows

    def apply(self, changes: Rows) -> None:
        """Apply changes to `result`, by the key that the query has."""
        key = self.kept.key
        places = None if key is None else [self.kept.view.names.index(name) for name in key]
        for *values, op in changes:
            row = tuple(values)
            if places is not None:
                same = [old for old in self.result if all(old[place] == row[place] for place in places)]
                assert bool(same) == (op != "i"), f"{op} {row} does not fit what is there"
                for old in same:
                    del self.result[old]
            elif op == "d":
                assert self.result[row] > 0, f"{row} is removed and was not there"
                self.result[row] -= 1
            if op != "d":
                self.result[row] += 1
        self.result = +self.result


def applied(changes: list[Rows], key: tuple[int, ...] | None = None) -> Counter[tuple[Any, ...]]:
    """The table that changelogs describe, by whole rows or by the places of a key; a row that is not there cannot be removed."""
    table: Counter[tuple[Any, ...]] = Counter()
    by_key: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for row in (row for epoch in changes for row in epoch):
        *values, op = row
        if key is not None:
            place = tuple(values[index] for index in key)
            assert (place in by_key) == (op != "i"), f"{row} does not fit what is there"
            by_key.pop(place, None)
            if op != "d":
                by_key[place] = tuple(values)
        else:
            assert op in {"i", "d"}
            table[tuple(values)] += 1 if op == "i" else -1
            assert table[tuple(values)] >= 0, f"{row} is removed and was not there"
    return Counter(by_key.values()) if key is not None else +table
