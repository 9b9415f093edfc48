"""A target that cannot say which epoch it holds: the pipeline's store says it, and a repeated epoch is not written again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from millstream.connectors.print.sink import PrintSink
from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
TEXT = """
    sources: {m: {type: memory, rows: [{id: 1}, {id: 2}], rows_per_epoch: 1}}
    sinks: {out: {type: print, from: m}}
    settings: {checkpoint: ck}
"""


def repeated(pipeline: Callable[..., Topology], run: Callable[..., Report], folder: Path) -> int:
    """Rows that the sink gets when Spark does not know that the last epoch was done."""
    assert run(pipeline(TEXT)).nodes["out"].rows_in == 2
    (folder / "ck/queries/m/commits/1").unlink()
    for crumb in (folder / "ck/queries/m/commits").glob(".1*"):
        crumb.unlink()
    (folder / "ck/_millstream/finished/m.json").unlink()
    return run(pipeline(TEXT)).nodes["out"].rows_in or 0


def test_a_repeated_epoch_is_not_printed_again(pipeline: Callable[..., Topology], run: Callable[..., Report], tmp_path: Path) -> None:
    assert repeated(pipeline, run, tmp_path) == 0


def test_without_the_ledger_it_is(
    pipeline: Callable[..., Topology], run: Callable[..., Report], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PrintSink, "holds_ledger", True)
    assert repeated(pipeline, run, tmp_path) == 1
