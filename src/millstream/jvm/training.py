"""Makes the class-data archive: runs typical pipeline work on a few rows, and lets the JVM write the classes that it loaded.

Other classes are loaded from the jars later, a little slower. So the workload does what common
pipelines do: read and write files of each format, SQL, Python on Arrow batches, epochs through `foreachBatch`, state.

    python -m millstream.jvm.training     what a session starts, detached, when it has found no archive
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.errors import Diagnostic, MillstreamError, SetupError
from millstream.jvm.archive import Archive, claim, prune, record_failure
from millstream.jvm.attachment import attach, detach
from millstream.jvm.java import find_java
from millstream.jvm.launch import SessionOptions, archive_for, plan_launch
from millstream.jvm.machine import find_spark
from millstream.jvm.process import start_jvm

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_DUMPING = 300.0


def make(environ: Mapping[str, str] = os.environ) -> Archive | None:
    """Make the archive and wait for it; None if another process is making it."""
    archive = archive_for(find_java(environ), find_spark(), environ)
    lock = claim(archive)
    if lock is None:
        return None
    part = archive.path.with_suffix(f".{os.getpid()}.part")
    try:
        _dump_java(archive)
        _dump_spark(archive, part, environ)
        part.replace(archive.path)
        prune(archive)
    except (MillstreamError, OSError, subprocess.SubprocessError):
        record_failure(archive)
        raise
    finally:
        part.unlink(missing_ok=True)
        lock.unlink(missing_ok=True)
    return archive


def _dump_java(archive: Archive) -> None:
    """An archive of Java's own classes, for a Java that has none."""
    if archive.bundled or archive.base.exists():
        return
    part = archive.base.with_suffix(f".{os.getpid()}.part")
    command: list[str | Path] = [archive.java.executable, "-Xshare:dump", f"-XX:SharedArchiveFile={part}", "-Xlog:disable"]
    subprocess.run(command, capture_output=True, timeout=_DUMPING, check=True)
    part.replace(archive.base)


def _dump_spark(archive: Archive, part: Path, environ: Mapping[str, str]) -> None:
    launch = plan_launch(SessionOptions(app_name="training", master="local[2]", profile="short"), environ, lambda _: None)
    jvm = start_jvm(replace(launch.options, flags=(*archive.dump(part), *launch.options.flags)))
    spark = None
    try:
        spark = attach(jvm.connect(), launch.conf, launch.warms)
        with tempfile.TemporaryDirectory(prefix="millstream-training-") as folder:
            exercise(spark, Path(folder))
    finally:
        detach(spark, jvm, _DUMPING)
    if not part.is_file():
        raise SetupError(
            Diagnostic("MS044", "the JVM wrote no class-data archive", help="start-up stays slower; nothing else depends on it")
        )


def exercise(spark: SparkSession, folder: Path) -> None:
    rows = spark.createDataFrame([(1, "ann", 2.5), (2, "bob", 1.0)], "id long, name string, amount double")
    for kind in ("json", "csv", "parquet", "orc"):
        rows.write.mode("overwrite").partitionBy("name").format(kind).save(f"{folder}/{kind}")
        spark.read.schema(rows.schema).format(kind).load(f"{folder}/{kind}").where("amount > 1").collect()
    files = spark.readStream.schema(rows.schema).json(f"{folder}/json")
    _stream(files, folder / "files")
    generated = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    generated.createOrReplaceTempView("generated")
    chosen = spark.sql("SELECT value AS id, concat('n', value) AS name, value * 0.5D AS amount FROM generated WHERE value % 2 = 0")
    _stream(chosen.mapInArrow(_identity, rows.schema), folder / "python")
    _stream(chosen.groupBy("name").count(), folder / "state", "update")


def _stream(frame: DataFrame, checkpoint: Path, mode: str = "append") -> None:
    """One epoch whose rows are persisted, counted, written and fetched as Arrow."""

    def epoch(batch: DataFrame, number: int) -> None:
        batch = batch.persist()
        batch.write.mode("append").parquet(f"{checkpoint}.out/{number}")
        batch.write.mode("append").json(f"{checkpoint}.json/{number}")
        batch.write.mode("append").format("noop").save()
        batch.toArrow()
        batch.unpersist()

    writer = frame.writeStream.outputMode(mode).option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    query = writer.foreachBatch(epoch).start()
    query.awaitTermination()
    assert query.lastProgress is not None


def _identity(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    yield from batches


if __name__ == "__main__":
    os.nice(10)
    try:
        make()
    except MillstreamError as error:
        sys.exit(str(error))
