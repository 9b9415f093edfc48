"""A repeated epoch has the rows that it had, or is refused."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millstream import read_committed
from millstream.connectors.file.sink import FileSinkRun
from millstream.connectors.file.source import FileSourceRun
from millstream.errors import MillstreamError
from millstream.observe.report import Report
from millstream.plan.topology import Topology
from millstream.sql.check.query import Query

pytestmark = pytest.mark.spark
TEXT = """
sources:
  rows: {type: file, path: in, format: json, schema: {id: int64}}
transforms:
  step: {type: sql, sql: "SELECT id, SQL AS x FROM rows"}
sinks:
  one: {type: file, from: step, path: out/one, format: parquet}
  two: {type: file, from: step, path: out/two, format: parquet}
settings: {trigger: {type: available_now}}
"""
PLAIN = TEXT.replace("SQL AS x", "1 AS x")
RANDOM = TEXT.replace("SQL", "reflect('java.util.UUID', 'randomUUID')")
Go = Callable[..., Report]


@pytest.fixture
def go(pipeline: Callable[..., Topology], run: Callable[..., Report]) -> Go:
    Path("in").mkdir()
    for name in "abc":
        Path(f"in/{name}.json").write_text(f'{{"id": {ord(name)}}}\n')
    return lambda text=PLAIN, **options: run(pipeline(text), **options)


def half_done(go: Go, monkeypatch: pytest.MonkeyPatch, text: str = PLAIN) -> None:
    """Sink `one` has committed the epoch, and `two` has not."""
    commit = FileSinkRun.commit

    def dying(self: Any, staged: Any, epoch: Any) -> None:
        if epoch.sink == "two":
            raise OSError("killed here")
        commit(self, staged, epoch)

    with monkeypatch.context() as patched:
        patched.setattr(FileSinkRun, "commit", dying)
        with pytest.raises(MillstreamError):
            go(text)


def refusal(go: Go) -> str:
    with pytest.raises(MillstreamError) as caught:
        go()
    return str(caught.value)


def same() -> bool:
    one, two = (sorted(read_committed(f"out/{name}").to_pylist(), key=str) for name in ("one", "two"))
    return one == two


def test_files_that_changed_or_are_gone_stop_the_repetition(go: Go, monkeypatch: pytest.MonkeyPatch) -> None:
    half_done(go, monkeypatch)
    before = Path("in/a.json").stat()
    Path("in/a.json").write_text('{"id": 1}\n')
    Path("in/b.json").unlink()
    said = refusal(go)
    assert "MS143" in said and "in/a.json was changed" in said and "in/b.json is gone" in said and "c.json" not in said
    Path("in/a.json").write_text('{"id": 97}\n')
    os.utime("in/a.json", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert "1 file" in refusal(go)
    assert go(accept_replay=True).notes == ("query `rows`: epoch 0 is finished with the rows as they are now",)
    assert not same()


def test_files_of_an_epoch_that_no_sink_holds_may_be_mended_but_not_vanish(go: Go, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(FileSinkRun, "commit", lambda *_: 1 / 0)
        with pytest.raises(MillstreamError):
            go()
    Path("in/a.json").write_text('{"id": 1}\n')
    Path("in/b.json").rename("b.json")
    assert "in/b.json is gone" in refusal(go)
    shutil.copy2("b.json", "in/b.json")
    (note,) = go().notes
    assert note.endswith("in/a.json was changed") and "no sink holds any of epoch 0" in note
    assert same() and sorted(read_committed("out/one")["id"].to_pylist()) == [1, 98, 99]


def test_files_of_an_epoch_whose_rows_are_kept_may_not_change(go: Go, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(FileSinkRun, "commit", lambda *_: 1 / 0)
        with pytest.raises(MillstreamError):
            go(RANDOM)
    Path("in/a.json").write_text('{"id": 1}\n')
    assert "MS143" in refusal(lambda: go(RANDOM))


def test_without_the_look_at_the_files_sinks_differ(go: Go, monkeypatch: pytest.MonkeyPatch) -> None:
    half_done(go, monkeypatch)
    Path("in/b.json").unlink()
    monkeypatch.setattr(FileSourceRun, "find_changes", lambda *_: [])
    assert go().state == "done" and not same()


def test_files_of_an_epoch_that_every_sink_holds_may_change(go: Go) -> None:
    go()
    Path(".millstream/p/queries/rows/commits/0").unlink()
    Path("in/b.json").unlink()
    assert go().state == "done" and same()


@pytest.mark.parametrize("text", [RANDOM, RANDOM.replace('FROM rows"', 'FROM rows", on_error: drop')], ids=["plain", "bad rows apart"])
def test_what_spark_calls_non_deterministic_is_computed_once(go: Go, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(Query, "deterministic", True)
    half_done(go, monkeypatch, text)
    go(text)
    assert same()


def test_without_asking_spark_it_is_not(go: Go, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Query, "deterministic", True)
    monkeypatch.setattr("millstream.sql.analysed.plans.is_deterministic", lambda _: True)
    half_done(go, monkeypatch, RANDOM)
    go(RANDOM)
    assert not same()
