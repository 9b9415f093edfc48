"""What a run keeps beside its events: its checkpoint with the epochs that targets hold, and the log of its JVM."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from millstream.checkpoint.layout import OWN, Checkpoint
from millstream.errors import MillstreamError
from millstream.inspector.attended import AttendedRun
from millstream.plan.cutting import QueryPlan, cut
from millstream.plan.run_options import log_folder

_LINES = 200
_BYTES = 64 << 10


def checkpoint_document(run: AttendedRun) -> dict[str, Any]:
    """The checkpoint of a run: how far each query is, and what its sinks have received."""
    return {"url": run.checkpoint.storage.url, "queries": [_query(run.checkpoint, plan) for plan in cut(run.topology)]}


def _query(checkpoint: Checkpoint, plan: QueryPlan) -> dict[str, Any]:
    found = checkpoint.query(plan.name)
    committed, planned = found.last_committed(), found.last_planned()
    digest = ""
    with suppress(MillstreamError):  # its entry has been removed meanwhile
        digest = found.entry(committed).digest if committed >= 0 else ""
    noted = checkpoint.read_json(f"{OWN}/delivered/{plan.name}.json") or {}
    first = noted.get("sinks", {})
    sinks = [
        {"name": sink.name, "first": first.get(sink.name), "epoch": committed if sink.name in first else None, "digest": digest}
        for sink in plan.sinks
    ]
    return {"name": plan.name, "planned": planned, "committed": committed, "finished": checkpoint.finished_at(plan.name), "sinks": sinks}


def log_document(run: AttendedRun) -> dict[str, Any]:
    """The last lines of the JVM's log, which has warnings and errors of Spark."""
    path = log_folder(run.topology) / "jvm.log"
    try:
        return {"path": str(path), "lines": _last_lines(path)}
    except OSError:
        return {"path": "", "lines": []}  # several pipelines share one Spark, whose log is with the first of them


def _last_lines(path: Path) -> list[str]:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _BYTES))
        text = file.read().decode(errors="replace")
    lines = text.splitlines()
    return (lines[1:] if size > _BYTES else lines)[-_LINES:]
