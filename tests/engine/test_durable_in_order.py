"""When a manifest is put, everything that it relies on has reached the disk: rows, their folders, Spark's logs, the state."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from millstream.clients.storage import LocalStorage
from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
PIPELINE = """
settings: {{durability: {durability}}}
sources:
  numbers: {{type: file, path: in, format: json, schema: {{id: int64}}, mode: {{type: bounded}}, max_files_per_epoch: 1}}
transforms:
  sums: {{type: sql, sql: "SELECT id % 3 AS k, count(*) AS n FROM numbers GROUP BY id % 3"}}
sinks:
  out: {{type: file, from: sums, path: far/out, format: json, partition_by: [k]}}
"""


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """For each manifest: the paths that were made durable before it counted."""
    durable: set[str] = set()
    found: list[set[str]] = []
    fsync, put_once = os.fsync, LocalStorage.put_once

    def syncs(descriptor: int) -> None:
        fsync(descriptor)
        durable.add(os.path.relpath(Path(f"/proc/self/fd/{descriptor}").readlink(), tmp_path))

    def puts(self: LocalStorage, path: str, data: bytes) -> bool:
        if "out/_millstream" in self.url or "_millstream/staged" in self.url:
            found.append({*durable})
        return put_once(self, path, data)

    monkeypatch.setattr(os, "fsync", syncs)
    monkeypatch.setattr(LocalStorage, "put_once", puts)
    (tmp_path / "in").mkdir()
    for number in range(2):
        (tmp_path / f"in/{number}.json").write_text("".join(json.dumps({"id": number * 6 + i}) + "\n" for i in range(6)))
    return found


def needed(epoch: int) -> set[str]:
    query = ".millstream/p/queries/sums"
    before = {f"{query}/commits/{epoch - 1}", f"{query}/commits"} if epoch else set()
    logs = {query, f"{query}/metadata", f"{query}/offsets", f"{query}/offsets/{epoch}", f"{query}/sources/0", f"{query}/sources/0/{epoch}"}
    state = {f"{query}/state/0/0", f"{query}/state/0/0/{epoch + 1}.changelog", f"{query}/state/0/_metadata/metadata"}
    return {".millstream/p", "far", "far/out", "far/out/_staging", *before, *logs, *state}


def test_all_that_an_epoch_relies_on_is_durable_before_it_counts(
    watched: list[set[str]], pipeline: Callable[..., Topology], run: Callable[..., Report]
) -> None:
    run(pipeline(PIPELINE.format(durability="fsync")))
    assert len(watched) == 2
    for epoch, durable in enumerate(watched):
        assert needed(epoch) - durable == set()
        manifest = next(Path("far/out/_millstream").rglob(f"{epoch:08d}.json"))
        sources = {f"far/out/{file['source']}" for file in json.loads(manifest.read_text())["files"]}
        assert len(sources) == 3
        assert sources - durable == set()
        assert {str(Path(source).parent) for source in sources} - durable == set()


def test_with_process_nothing_waits_for_the_disk(
    watched: list[set[str]], pipeline: Callable[..., Topology], run: Callable[..., Report]
) -> None:
    run(pipeline(PIPELINE.format(durability="process")))
    assert len(watched) == 2
    assert [path for path in watched[-1] if Path(path).is_file() or "_staging" in path] == []


def test_rows_are_kept_for_an_epoch_only_when_its_plan_is_durable(
    watched: list[set[str]], pipeline: Callable[..., Topology], run: Callable[..., Report]
) -> None:
    text = PIPELINE.format(durability="fsync").partition("transforms:")[0]
    run(
        pipeline(f"""{text}
transforms:
  kept: {{type: sql, sql: "SELECT id, uuid() AS u FROM numbers"}}
sinks:
  one: {{type: blackhole, from: kept}}
  two: {{type: blackhole, from: kept}}
""")
    )
    assert len(watched) == 2
    for epoch, durable in enumerate(watched):
        assert f".millstream/p/queries/numbers/offsets/{epoch}" in durable
