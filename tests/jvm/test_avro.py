"""The locked jar works with the installed Spark: rows go out as Avro and come back."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from millstream.errors import SetupError
from millstream.jvm.jars import fetch
from millstream.jvm.java import find_java

pytestmark = pytest.mark.spark

SCRIPT = """
import json
from millstream.jvm.session import SessionOptions, begin
with begin(SessionOptions(master="local[1]", profile="short", extras=("avro",))).finish() as session:
    rows = session.spark.sql("SELECT id, concat('n', id) AS name, id * 1.5D AS amount FROM range(5)")
    rows.write.format("avro").save("out")
    back = session.spark.read.format("avro").load("out").orderBy("id")
    same, types = back.collect() == rows.collect(), dict(back.dtypes)
    epochs = []
    stream = session.spark.readStream.schema(rows.schema).format("avro").load("out")
    query = stream.writeStream.trigger(availableNow=True).option("checkpointLocation", "checkpoint").foreachBatch(
        lambda batch, epoch: epochs.append(batch.count())).start()
    query.awaitTermination()
print(json.dumps({"same": same, "epochs": epochs, "types": types}))
"""


def test_rows_survive_a_round_trip_through_avro(script: Callable[..., Any]) -> None:
    try:
        fetch(["avro"], find_java(os.environ), lambda _: None)
    except SetupError as error:
        pytest.skip(f"the jar is not here and cannot be fetched: {error.diagnostics[0].message}")
    facts = script(SCRIPT)
    assert facts["same"]
    assert facts["epochs"] == [5]
    assert facts["types"] == {"id": "bigint", "name": "string", "amount": "double"}
