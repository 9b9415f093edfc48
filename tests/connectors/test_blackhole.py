"""The blackhole computes every row, which a count alone would not."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.connectors.conftest import opened

from millstream.connectors.blackhole.sink import BlackholeSink

pytestmark = pytest.mark.spark


def test_rows_are_counted(spark: Any, epoch: Callable) -> None:
    assert opened(BlackholeSink()).stage(spark.range(1000), epoch()).rows == 1000


def test_a_row_that_fails_is_not_optimised_away(spark: Any, epoch: Callable) -> None:
    frame = spark.sql("SELECT CAST(if(id = 7, 'x', '1') AS int) AS n FROM range(10)")
    assert frame.count() == 10
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        opened(BlackholeSink()).stage(frame, epoch())
