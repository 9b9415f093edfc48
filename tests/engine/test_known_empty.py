"""Nodes that are known to have had no rows in an epoch are not sampled, so that a rare result does not cost a sample's pause."""

from __future__ import annotations

from typing import Any

from millstream.engine.epoch.staged import StagedEpoch, StagedSink
from millstream.plan.components import Staged
from millstream.spec.loader import loads

TEXT = """
sources: {g: {type: generator, rows: 1, fields: {id: {type: sequence}, k: {type: sequence}}}}
transforms: {some: {type: filter, from: g, where: id > 1}}
sinks: {out: {type: file, from: some, path: out, format: json%s}, bad: {type: file, path: bad, format: json}}
"""


def staged(rows: int | None, on_error: str = "") -> StagedEpoch:
    sink: Any = loads(TEXT % on_error).topology.by_name["out"]  # type: ignore[union-attr]
    unused: Any = None
    return StagedEpoch([StagedSink(sink, unused, Staged(rows, None), unused)])


def test_a_sink_and_what_it_reads() -> None:
    assert [staged(0).had_no_rows(node) for node in ("out", "some", "g")] == [True, True, False]
    assert not staged(3).had_no_rows("out")


def test_what_is_not_counted_or_may_be_rejected_is_not_known() -> None:
    assert not staged(None).had_no_rows("out")
    assert not staged(0, ", partition_by: [k], on_error: {dead_letter: bad}").had_no_rows("some")
