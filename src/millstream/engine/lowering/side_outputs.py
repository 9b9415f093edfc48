"""Shows side outputs the rows of sources: the batches pass a worker and go on as they are."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

from millstream.jvm.plugin_frames import map_batches, schema_of
from millstream.plan.components import POSITION, REJECT
from millstream.plan.components.shipping import for_workers
from millstream.plan.nodes import SourceNode
from millstream.plan.side_outputs import SideOutputNode
from millstream.plan.tracing import TRACED
from millstream.worker.plugin_runners import BatchObserver
from millstream.worker.plugin_tasks import Metrics, Task

_HIDDEN = frozenset({REJECT, POSITION, TRACED})


def observed(
    frame: DataFrame, source: SourceNode, watching: Iterable[tuple[SideOutputNode, Metrics]], directory: Path, hidden: tuple[str, ...]
) -> DataFrame:
    """The same rows, seen by the side outputs that watch the source."""
    for watcher, metrics in watching:
        if not watcher.sees(source.name):
            continue
        shown = tuple(name for name in frame.columns if name not in _HIDDEN)
        schema = pa.schema([field for field in schema_of(frame) if field.name in shown])
        task = Task(watcher.name, schema, metrics)
        reject = REJECT if REJECT in frame.columns else ""
        observe = for_workers(watcher.component, "observe").observe
        observer = BatchObserver(observe, task, str(directory.resolve()), shown, reject, hidden)
        frame = map_batches(frame, observer.run, None, type(watcher.component), directory)
    return frame
