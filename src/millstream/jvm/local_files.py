"""The local file system for queries with state.

Sessions use Hadoop's raw local file system, which is fast. But a Hadoop method that copies RocksDB's snapshots requires the checksummed
one, and fails without it. Then no snapshot is made, changelogs accumulate, and a restart replays all of them. So a plan with state uses the
checksummed one, with its checksum files switched off: state files have their own checksums.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONF: Mapping[str, str] = {"spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem"}


def write_no_checksum_files(spark: SparkSession) -> None:
    """Applies to the only instance in the JVM."""
    jvm: Any = spark._jvm
    jvm.org.apache.hadoop.fs.FileSystem.getLocal(spark._jsparkSession.sessionState().newHadoopConf()).setWriteChecksum(False)
