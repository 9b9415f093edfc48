"""Calls plugins on workers: a transform batch by batch, a sink with the batches of a part, a side output with batches that go on unchanged.

This module is pickled to the workers with the plugin. Notes on exceptions name the node that failed (`marks.py`).
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from millstream.errors import Diagnostic, RunError, TemporaryError
from millstream.worker import marks
from millstream.worker.archives import forget_archives
from millstream.worker.masking import hide, mask
from millstream.worker.plugin_tasks import Task, WriteTask, is_temporary, started
from millstream.worker.remote_errors import carry_errors

MESSAGES = pa.schema([("message", pa.binary()), ("rows", pa.int64()), ("bytes", pa.int64())])


@dataclass(frozen=True)
class TransformCall:
    """A transform as the function of batches that `BatchRunner` calls."""

    process: Callable[[pa.RecordBatch, Task], Any]
    task: Task

    def __call__(self, batch: pa.RecordBatch) -> Any:
        return self.process(batch, started(self.task))


@dataclass(frozen=True)
class SinkWriter:
    """Writes one part of an epoch, and returns the sink's message about it."""

    write: Callable[[Iterator[pa.RecordBatch], WriteTask], Any]
    task: WriteTask
    directory: str
    hidden: tuple[str, ...] = ()

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row with the message; none for a part without rows."""
        counted = _Counted(batch for batch in batches if batch.num_rows)
        with reported(self.task.node, self.directory, self.hidden):
            first = next(counted, None)
            if first is None:
                return
            message = self.write(chain([first], counted), started(self.task))
            for _ in counted:  # what the sink has not read was not written
                raise ValueError("the sink returned before it had read all batches: read `batches` to its end")
            yield pa.RecordBatch.from_pydict(
                {"message": [self._pickled(message)], "rows": [counted.rows], "bytes": [counted.bytes]}, schema=MESSAGES
            )

    def _pickled(self, message: Any) -> bytes:
        try:
            return pickle.dumps(message)
        except Exception as error:  # noqa: BLE001 — the message's own code may raise anything
            said = f"the message of `{self.task.node}` is a {type(message).__name__}, which cannot travel to the driver: {error}"
            raise RunError(Diagnostic("MS208", said, help="return plain data from `write`: numbers, texts, bytes, lists")) from None


class _Counted:
    """Batches, and the rows and bytes of those that were read."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self.rows = self.bytes = 0
        self._batches = iter(batches)

    def __iter__(self) -> _Counted:
        return self

    def __next__(self) -> pa.RecordBatch:
        batch = next(self._batches)
        self.rows += batch.num_rows
        self.bytes += batch.nbytes
        return batch


@dataclass(frozen=True)
class BatchObserver:
    """Shows a side output the batches of a node, and passes them on as they are."""

    observe: Callable[[pa.RecordBatch, Task], None]
    task: Task
    directory: str
    shown: tuple[str, ...]
    """The columns that are the node's own."""
    reject: str = ""
    """The column that is not null for rejects, which are not shown."""
    hidden: tuple[str, ...] = ()

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with reported(self.task.node, self.directory, self.hidden):
            task = started(self.task)
            for batch in batches:
                own = batch.select(list(self.shown))
                if self.reject:
                    own = own.filter(batch.column(self.reject).is_null())
                if own.num_rows:
                    self.observe(own, task)
                yield batch


@contextmanager
def reported(node: str, directory: str, hidden: tuple[str, ...]) -> Iterator[None]:
    """Failures of a plugin's code leave the body with the node's name, without secrets; a temporary one so that the epoch is repeated.
    The body is a whole task.
    """
    if directory not in sys.path:  # for modules that the plugin imports while it runs
        sys.path.insert(0, directory)
    try:
        with carry_errors(node):
            try:
                yield
            except Exception as error:
                if is_temporary(error):
                    raise TemporaryError(Diagnostic("MS207", f"`{node}`: {hide(str(error), hidden)}", node=node)) from None
                raise
    except Exception as error:
        told = mask(error, hidden)
        told.add_note(marks.write(marks.NODE, node))
        if told is not error:
            raise told from None
        raise
    finally:
        forget_archives()
