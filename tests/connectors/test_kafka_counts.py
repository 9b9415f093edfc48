"""What a bounded Kafka source has read is what lies before its end; where offsets have gaps, nobody knows, and nothing is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from millstream import KafkaSource
from millstream.clients.storage import LocalStorage
from millstream.plan.components import NodeContext, Progress

SOURCE = {"bootstrap_servers": "localhost:1", "topic": "t", "format": "string"}


@pytest.mark.parametrize(
    ("start", "end", "seen", "rows"),
    [(0, 5, 5, 5), (0, 9, 9, 7), (4, 9, 5, 3), (8, 9, 1, 0), (None, 9, 6, 4), (0, 9, 8, None), (0, 9, None, None)],
)
def test_rows_behind_the_end_do_not_count(tmp_path: Path, start: int | None, end: int, seen: int | None, rows: int | None) -> None:
    source = KafkaSource(**SOURCE, mode={"type": "bounded"})
    context = NodeContext("k", tmp_path, LocalStorage(tmp_path))
    context.storage.put("ends.json", json.dumps({"t": {"0": 7}}).encode())
    context.storage.put("0", b"\0v1\n" + json.dumps({"t": {"0": 3}}).encode())
    begin = None if start is None else {"t": {"0": start}}
    assert source.open(context).rows_read(Progress(begin, {"t": {"0": end}}, seen, True, context.storage)) == rows
