"""One pipeline from Kafka to Kafka, run as often as a test likes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.servers.kafka import Cluster

from millstream.connectors.kafka.worker import lanes
from millstream.connectors.kafka.write import delivery
from millstream.errors import Diagnostic, MillstreamError
from millstream.observe.report import Report
from millstream.plan.topology import Topology
from millstream.sql.catalyst.small_rows import SmallRows

TEXT = """
    connections: {{kafka: {{bootstrap_servers: "{address}"}}}}
    sources:
      m: {{type: kafka, topic: {source}, format: json, schema: {{k: string, n: int64}}, max_rows_per_epoch: 30}}
    transforms:
      rows: {{type: sql, sql: "{sql}"}}
    sinks:
      out: {{type: kafka, from: rows, topic: {target}, key: k, {options}}}
      files: {{type: file, from: rows, path: out, format: json}}
    settings: {{checkpoint: checkpoint, trigger: {{type: available_now}}}}
"""


def only_large(patched: pytest.MonkeyPatch) -> None:
    """No epoch is small."""
    patched.setattr(SmallRows, "collect", lambda *_: None)
    patched.setattr(delivery, "read_files", lambda *_: None)


class Stage:
    """One pipeline, run as often as a test likes."""

    def __init__(self, kafka: Cluster, pipeline: Callable[..., Topology], run: Callable[..., Report], folder: Path) -> None:
        self.kafka, self._pipeline, self._run, self.folder = kafka, pipeline, run, folder
        self.source, self.target, self.count = kafka.topic(), kafka.topic(4), 0

    def go(self, rows: int, options: str = "lanes: 4", sql: str = "SELECT * FROM m", text: str = "", **more: object) -> Report:
        """Send more rows, and run."""
        self.send(rows)
        values = {"source": self.source, "target": self.target, "options": options, "sql": sql}
        return self._run(self._pipeline(text or TEXT.format(address=self.kafka.address, **values)), **more)

    def send(self, rows: int) -> None:
        self.kafka.send(self.source, [{"k": f"k{n % 5}", "n": n} for n in range(self.count, self.count + rows)])
        self.count += rows

    def code(self, rows: int, **options: Any) -> str:
        return self.failure(rows, **options).code

    def failure(self, rows: int, **options: Any) -> Diagnostic:
        with pytest.raises(MillstreamError) as caught:
            self.go(rows, **options)
        return caught.value.diagnostics[0]

    def half_done(self, monkeypatch: pytest.MonkeyPatch, rows: int, **options: Any) -> None:
        """Run a large epoch until one lane has committed, and fail there."""
        token = self.folder / "token"
        token.touch()

        def passing(point: str, lane: int) -> None:
            if point == "committed":
                token.unlink()  # the first one only: the next one fails

        with monkeypatch.context() as patched:
            patched.setattr(lanes, "reach_point", passing)
            only_large(patched)
            self.code(rows, **options)

    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(message.value()) for message in self.kafka.messages(self.target)]

    def once(self) -> bool:
        """Whether all rows are there, once, each key in order."""
        numbers = {k: [row["n"] for row in self.rows() if row["k"] == k] for k in {row["k"] for row in self.rows()}}
        ordered = all(found == sorted(found) for found in numbers.values())
        return ordered and sorted(row["n"] for row in self.rows()) == list(range(self.count))

    def group(self) -> str:
        """The group that holds the markers of the lanes; that of small epochs has another one."""
        names = [each.group_id for each in self.kafka.admin.list_consumer_groups().result(20).valid if ".out." in each.group_id]
        names = [name for name in names if not name.endswith(".small")]
        (name,) = [name for name in names if any(topic == self.target for topic, _ in self.kafka.group(name))]
        return str(name)


@pytest.fixture
def stage(kafka: Cluster, pipeline: Callable[..., Topology], run: Callable[..., Report], tmp_path: Path) -> Stage:
    return Stage(kafka, pipeline, run, tmp_path)
