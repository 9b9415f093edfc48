"""Avro, whose reader and writer come as an extra: rows go out through the sink and come back through the source."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from millstream.errors import SetupError
from millstream.jvm.jars import fetch
from millstream.jvm.java import find_java

pytestmark = pytest.mark.spark
SCRIPT = """
import json
from pathlib import Path
from millstream.clients.storage import LocalStorage
from millstream.connectors.file.sink import FileSink
from millstream.connectors.file.source import FileSource
from millstream.jvm.session import SessionOptions, begin
from millstream.plan.components import Epoch, NodeContext

with begin(SessionOptions(master="local[1]", profile="short", extras=("avro",))).finish() as session:
    context = NodeContext("rows", Path(), LocalStorage(Path("checkpoint").absolute()))
    sink, epoch, found = FileSink(path="out", format="avro", partition_by="p").open(context), Epoch("q", "out", 0, "d", "t"), []
    rows = session.spark.sql("SELECT id, id % 2 AS p, array(TIMESTAMP '2026-01-01 00:00:00.000001') AS l FROM range(4)")
    sink.commit(sink.stage(rows, epoch), epoch)
    source = FileSource(path="out", format="avro", mode={"type": "bounded"})
    frame = source.open(context).read(session.spark)
    keep = lambda batch, _: found.extend(batch.orderBy("id").selectExpr("to_json(struct(*)) AS j").collect())
    writer = frame.writeStream.foreachBatch(keep)
    writer.option("checkpointLocation", "query").trigger(availableNow=True).start().awaitTermination()
print(json.dumps([json.loads(row.j) for row in found]))
"""


def test_rows_go_out_and_come_back(tmp_path: Path) -> None:
    try:
        fetch(["avro"], find_java(os.environ), lambda _: None)
    except SetupError as error:
        pytest.skip(f"the jar is not here and cannot be fetched: {error.diagnostics[0].message}")
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout.splitlines()[-1])
    assert [(row["id"], row["p"]) for row in rows] == [(0, 0), (1, 1), (2, 0), (3, 1)]
    assert rows[0]["l"] == ["2026-01-01T00:00:00.000Z"]
