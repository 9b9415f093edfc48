"""The local file system as a query with state needs it.

Sessions use Hadoop's raw local file system, which is quick; but RocksDB's snapshots are copied by a method of Hadoop's that insists on
the checked one, and fails without it. Then no snapshot is ever made, changelogs pile up, and a restart replays all of them. So a plan
with state gets the checked one, and its checksum files are switched off: state files carry checksums of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONF: Mapping[str, str] = {"spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem"}


def write_no_checksum_files(spark: SparkSession) -> None:
    """For the one instance that the JVM has of it."""
    jvm: Any = spark._jvm
    jvm.org.apache.hadoop.fs.FileSystem.getLocal(spark._jsparkSession.sessionState().newHadoopConf()).setWriteChecksum(False)
