"""The local file system of a session.

Hadoop's own forks a `chmod` for every file and folder that it makes, since its native library is not there: that took a fifth of a small
epoch. Two small Java classes (`java_classes/`) set permissions by a system call instead.
Sessions use the raw file system, which writes no checksum files. But a Hadoop method that copies RocksDB's snapshots requires the
checksummed one, and fails without it. Then no snapshot is made, changelogs accumulate, and a restart replays all of them. So a plan with
state uses the checksummed one, with its checksum files switched off: state files have their own checksums.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RAW: Mapping[str, str] = {"spark.hadoop.fs.file.impl": "millstream.RawLocalFiles"}
CHECKSUMMED: Mapping[str, str] = {"spark.hadoop.fs.file.impl": "millstream.LocalFiles"}


def write_no_checksum_files(spark: SparkSession) -> None:
    """Applies to the only instance in the JVM."""
    jvm: Any = spark._jvm
    jvm.org.apache.hadoop.fs.FileSystem.getLocal(spark._jsparkSession.sessionState().newHadoopConf()).setWriteChecksum(False)
