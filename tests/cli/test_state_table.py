"""`millstream state show` in a terminal: key and value side by side; what Spark keeps as bytes is shown by its size."""

import pytest

from millstream.cli.state import _table


def test_bytes_are_shown_by_their_size(capsys: pytest.CaptureFixture[str]) -> None:
    _table([{"key": {"k": "a"}, "value": {"n": 2, "collected": b"\x00" * 1500}}])
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [["k", "n", "collected"], ["a", "2", "1,500", "bytes"]]
