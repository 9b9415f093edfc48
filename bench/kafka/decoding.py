"""Avro messages to columns: Spark's reader by hand, ours for one and for three writers, and two decoders in Python workers.

One process measures all of them in turns on the same 1 M messages of about 200 bytes, read from Parquet and written to nowhere:
`python -m bench kafka.decoding`. The decoders in Python workers get Arrow batches (`mapInArrow`); what is faster is in the product.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.figures import Figure, cost_of, median

_ROWS, _TURNS = 1_000_000, 5
_FIELDS: list[tuple[str, Any]] = [
    ("id", "long"),
    ("user", "string"),
    ("price", "double"),
    ("quantity", "int"),
    ("paid", "boolean"),
    ("note", "string"),
]
_FIELDS += [("address", "string"), ("city", "string"), ("at", {"type": "long", "logicalType": "timestamp-micros"})]
_WRITER = json.dumps({"type": "record", "name": "Order", "fields": [{"name": name, "type": kind} for name, kind in _FIELDS]})
_OLDER = json.dumps({"type": "record", "name": "Order", "fields": [{"name": name, "type": kind} for name, kind in _FIELDS[:-1]]})
_PIECE = 10_000


def measure() -> list[Figure]:
    found = json.loads(cost_of([sys.executable, "-m", "bench.kafka.decoding"]).output.splitlines()[-1])
    figures = [Figure(name, _ROWS / median(seconds) / 1e6, "M messages/s") for name, seconds in found["wall"].items()]
    spent = {name: median(seconds) for name, seconds in found["cpu"].items()}
    figures += [Figure(f"{name}, CPU", seconds, "s per million") for name, seconds in spent.items()]
    ratio = spent["from_avro by hand"] / spent["ours, one writer"]
    return [*figures, Figure("throughput by CPU, ours to hand-written", ratio, "", bar=0.8, floor=True)]


def _messages(spark: SparkSession, folder: str) -> DataFrame:
    from pyspark.sql.avro.functions import to_avro

    text = F.expr("concat('text of some length, number ', id, ' of many')")
    kinds = {"long": "bigint", "double": "double", "int": "int", "boolean": "boolean"}
    cells = {"string": text, **{kind: F.col("id").cast(sql) for kind, sql in kinds.items()}}
    row = F.struct(*[(F.timestamp_micros("id") if isinstance(kind, dict) else cells[kind]).alias(name) for name, kind in _FIELDS])
    value = F.concat(F.lit(bytearray(b"\x00\x00\x00\x00\x07")), to_avro(row, _nullable(_WRITER)))
    spark.range(_ROWS).select(value.alias("value")).write.parquet(folder)
    # what else a Kafka source gives costs nothing there, and must not here
    place = {"key": "CAST(NULL AS BINARY)", "topic": "'t'", "partition": "0", "offset": "0L", "timestamp": "now()"}
    return spark.read.parquet(folder).select("value", *[F.expr(sql).alias(name) for name, sql in place.items()])


def _nullable(text: str) -> str:
    """Spark's columns may be null, so the messages are written with unions: the usual case."""
    schema = json.loads(text)
    return json.dumps({**schema, "fields": [{**each, "type": ["null", each["type"]], "default": None} for each in schema["fields"]]})


def _by_hand(frame: DataFrame) -> DataFrame:
    from pyspark.sql.avro.functions import from_avro

    return frame.select(from_avro(F.expr("substring(value, 6)"), _nullable(_WRITER)).alias("row")).select("row.*")


def _ours(writers: int) -> Callable[[DataFrame], DataFrame]:
    from millstream.connectors.kafka.read.decoding import Decoding, decode
    from millstream.connectors.kafka.schemas.avro import AvroPart
    from millstream.formats.avro import parse

    reader = parse(_nullable(_WRITER))
    known = {7: reader.text(), **{8 + n: parse(_nullable(_OLDER)).text() for n in range(writers - 1)}}
    part = AvroPart("avro", reader.columns(), {}, "value", node="m", reader=reader, writers=known)
    return lambda frame: decode(frame, Decoding("m", part, None, None, False, False))


def _in_workers(decode: Callable[[pa.Array], pa.RecordBatch]) -> Callable[[DataFrame], DataFrame]:
    from pyspark.sql.pandas.types import from_arrow_schema

    from millstream.formats.avro import parse

    def each(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for start in range(0, batch.num_rows, _PIECE):
                yield decode(batch.column(0).slice(start, _PIECE))

    schema = from_arrow_schema(parse(_nullable(_WRITER)).columns())
    return lambda frame: frame.select(F.expr("substring(value, 6)").alias("value")).mapInArrow(each, schema)  # type: ignore[arg-type]


def _rust(values: pa.Array) -> pa.RecordBatch:
    from pyruhvro import deserialize_array

    batch = deserialize_array(values.to_pylist(), _nullable(_WRITER))
    at = batch.schema.get_field_index("at")
    return batch.set_column(at, "at", batch.column(at).cast(pa.timestamp("us", "UTC")))


def _fastavro(values: pa.Array) -> pa.RecordBatch:
    import fastavro

    schema: Any = fastavro.parse_schema(json.loads(_nullable(_WRITER)))
    from millstream.formats.avro import parse

    rows = [fastavro.schemaless_reader(BytesIO(value), schema, None) for value in values.to_pylist()]
    return pa.RecordBatch.from_pylist(rows, schema=parse(_nullable(_WRITER)).columns())


def main() -> None:
    from pyspark import cloudpickle

    from millstream.testing import session

    spark = session()
    cloudpickle.register_pickle_by_value(sys.modules["__main__"])  # type: ignore[no-untyped-call]  # cloudpickle has no types
    ways = {"from_avro by hand": _by_hand, "ours, one writer": _ours(1), "ours, three writers": _ours(3)}
    if find_spec("pyruhvro"):  # `pip install pyruhvro`
        ways["mapInArrow with pyruhvro"] = _in_workers(_rust)
    ways["mapInArrow with fastavro"] = _in_workers(_fastavro)
    wall: dict[str, list[float]] = {name: [] for name in ways}
    cpu: dict[str, list[float]] = {name: [] for name in ways}
    with tempfile.TemporaryDirectory() as folder:
        frame = _messages(spark, str(Path(folder) / "messages"))
        size = frame.select(F.avg(F.octet_length("value"))).first()
        print(f"{_ROWS} messages of {size[0] if size else 0:.0f} bytes")
        for turn in range(_TURNS + 1):
            for name, way in ways.items():
                if turn > 1 and "fastavro" in name:  # one turn tells
                    continue
                began, spent = time.perf_counter(), _spent()
                way(frame).write.format("noop").mode("overwrite").save()
                if turn:
                    wall[name].append(time.perf_counter() - began)
                    cpu[name].append(_spent() - spent)
    print(json.dumps({"wall": wall, "cpu": cpu}))


def _spent() -> float:
    """CPU seconds of the JVM and its workers so far: on a shared machine they tell more than the clock."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system
    return total


if __name__ == "__main__":
    main()
