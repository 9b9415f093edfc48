"""A pipeline forgets windows that have passed also where its query is incremental: windows of several sizes, joined by their start."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import yaml
from tests.sql.test_windows_below import answer, normal
from tests.stateful.conftest import at

from millstream.engine.incremental import view
from millstream.engine.incremental.maintenance import Maintenance
from millstream.errors import MillstreamError
from millstream.observe.report import Report
from millstream.plan.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
EPOCHS, FAILING, MOST = 5, 2, 30
ROWS = [{"k": k, "v": number % 7, "at": at(10 * number + 5)} for number in range(EPOCHS * 4) for k in "ab"]
SQL = """
    WITH tens AS (SELECT window(at, '10 seconds') w, k, sum(v) s FROM t GROUP BY 1, 2),
    thirties AS (SELECT window.start a, k, count(*) n FROM t GROUP BY window(at, '30 seconds', '10 seconds'), k)
    SELECT x.w.start a, sum(x.s) s, sum(y.n) n FROM tens x JOIN thirties y ON x.w.start = y.a AND x.k = y.k GROUP BY x.w.start
"""


def test_a_pipeline_keeps_open_windows_only(
    pipeline: Callable[..., Topology], run: Callable[..., Report], spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fails in the middle, when an epoch is written and delivered, and goes on."""
    sizes: list[int] = []
    added: list[int] = []
    finish = Maintenance.finish

    def watched(self: Maintenance, epoch: int, *arguments: Any) -> str:
        added.append(sum(rows for name, rows in self._changed.items() if name.strip()))
        if epoch == FAILING and len(added) == FAILING + 1:
            raise RuntimeError("the end")
        warning = finish(self, epoch, *arguments)
        sizes.append(sum(rows for name, rows in self._kept.items() if name.strip()))
        return warning

    monkeypatch.setattr(view, "_FRAGMENTS", 2)
    monkeypatch.setattr(Maintenance, "finish", watched)
    source = {"type": "memory", "rows_per_epoch": 8, "event_time": {"column": "at", "watermark": "0s"}, "rows": ROWS}
    nodes = {"q": {"type": "sql", "sql": SQL, "late": "drop"}}
    sinks = {"out": {"type": "memory", "from": "q"}}
    topology = pipeline(yaml.safe_dump({"name": "p", "sources": {"t": source}, "transforms": nodes, "sinks": sinks}))
    with pytest.raises(MillstreamError):
        run(topology)
    run(topology)
    spark.createDataFrame(pa.Table.from_pylist(ROWS)).createOrReplaceTempView("t")
    expected = normal(spark.sql(SQL).toArrow().to_pylist())
    spark.catalog.dropTempView("t")
    assert normal(answer(topology, ("a",))) == expected
    after_start = {FAILING, EPOCHS}  # what was written since the last snapshot is read back, and leaves again
    assert max(size for epoch, size in enumerate(sizes) if epoch not in after_start) <= MOST < sum(added), f"{sizes} {added}"
