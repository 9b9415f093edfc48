"""State that is larger than the JVM's heap is held on disk, and the answer is right."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.chaos.arena import KILLS

from millstream import read_committed

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200), pytest.mark.skipif(not KILLS, reason="`make chaos` runs it: it takes minutes")]
FILES, ROWS, KEYS = 24, 75_000, 500_000
"""Both sides of the join are kept: about 1 GB of rows, twice the heap."""
PIPELINE = """
sources:
  t: {type: file, path: in, format: parquet, schema: {id: int64, k: int64, text: string}, mode: {type: bounded}, max_files_per_epoch: 1}
transforms:
  q: {type: sql, sql: "SELECT a.id, b.id AS other, a.text FROM t a JOIN t b ON a.k = b.k AND a.id < b.id"}
sinks:
  out: {type: file, from: q, path: out, format: parquet}
settings: {driver_memory: 512MB, spark: {spark.sql.shuffle.partitions: "16"}}
"""


def test_a_join_of_more_rows_than_fit_into_memory(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE)
    (tmp_path / "in").mkdir()
    for number in range(FILES):
        ids = range(number * ROWS, (number + 1) * ROWS)
        file = tmp_path / f"in/{number:02}.parquet"
        pq.write_table(pa.table({"id": ids, "k": [i % KEYS for i in ids], "text": [f"{i:012}" * 20 for i in ids]}), file)
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
    subprocess.run([sys.executable, "-m", "millstream.cli", "run", "p.yaml"], cwd=tmp_path, check=True, capture_output=True)
    found = read_committed(str(tmp_path / "out"))
    more = FILES * ROWS % KEYS
    fewer = FILES * ROWS // KEYS
    assert found.num_rows == more * (fewer + 1) * fewer // 2 + (KEYS - more) * fewer * (fewer - 1) // 2
    apart = pc.subtract(found["other"], found["id"])
    assert apart.equals(pc.multiply(pc.divide(apart, KEYS), KEYS))
