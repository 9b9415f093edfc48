"""Hand-written: ten rows through one streaming query, as the first page of any tutorial has it."""

import os
import sys
import tempfile
import time
from typing import Any

os.environ["PYSPARK_PYTHON"] = sys.executable

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

out: list[object] = []


def keep(frame: DataFrame, epoch: int) -> None:
    out.extend(frame.collect())


spark = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", 2).getOrCreate()
rows = spark.readStream.schema("a int, b string").json("in").where("a > 0")
query = rows.writeStream.trigger(availableNow=True).option("checkpointLocation", tempfile.mkdtemp()).foreachBatch(keep).start()
query.awaitTermination()
spark.stop()
assert len(out) == 10

# a program would end here; waiting for the JVM makes its CPU time countable, and the time spent waiting is not counted
ended = time.perf_counter()
gateway: Any = SparkContext._gateway
gateway.shutdown()
gateway.proc.stdin.close()
gateway.proc.wait()
print(time.perf_counter() - ended)
