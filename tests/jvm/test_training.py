"""The work that the class-data archive is made from runs through, and goes along the roads it is meant to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.jvm.training import exercise

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_the_training_reads_writes_and_streams(spark: SparkSession, tmp_path: Path) -> None:
    exercise(spark, tmp_path)
    folders = {path.name for path in tmp_path.iterdir()}
    assert {"json", "csv", "parquet", "orc", "files.out", "python.out", "state.out"} <= folders
