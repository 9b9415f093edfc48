"""Runs a `BucketFunction` on a bucket: it gets all rows and all state as whole Arrow tables. This module is pickled to the workers
(`pickling.py`), so it imports only modules of Millstream that are pickled too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.worker.batches import WrongResultError, fit_batch
from millstream.worker.buckets import sort_by
from millstream.worker.key_runner import Visit
from millstream.worker.output_batches import OutputShape
from millstream.worker.processing import Moment, as_micros
from millstream.worker.state_layout import StateLayoutError


@dataclass(frozen=True)
class TableRunner:
    """Calls a `BucketFunction`."""

    function: Any
    keys: tuple[str, ...]
    input: pa.Schema
    states: pa.Schema
    shape: OutputShape
    order: tuple[str, ...]

    @property
    def kinds(self) -> dict[str, Any]:
        """A table has no named states."""
        return {}

    def visit(self, rows: pa.Table | None, stored: pa.Table | None, moment: Moment) -> Visit:
        state = self._open_state(stored)
        table = self.input.empty_table() if rows is None else sort_by(rows, np.zeros(rows.num_rows, np.int8), self.order)[0]
        try:
            return self._visit(table, state, moment)
        except WrongResultError:
            raise
        except Exception as error:
            if not self.shape.isolate or not table.num_rows:
                raise
            return Visit(self.shape.rejects(table.to_pylist(), f"{type(error).__name__}: {error}"), state)

    def _visit(self, rows: pa.Table, state: pa.Table, moment: Moment) -> Visit:
        result = self.function.process(self.keys, rows, state, moment)
        if not hasattr(result, "wake_at"):
            raise WrongResultError(f"expected a BucketResult, got {type(result).__name__}")
        emitted = [("", result.rows)] if result.rows is not None else []
        emitted += list(result.outputs.items())
        batches = self.shape.batches(self.shape.collect(emitted if len(emitted) != 1 else iter(emitted)))
        if result.rejects is not None and self.shape.isolate:
            batches += self.shape.rejects(result.rejects[0].to_pylist(), result.rejects[1])
        wake = None if result.wake_at is None else max(as_micros(result.wake_at), (moment.watermark_us or 0) + 1)
        return Visit(batches, self._check_state(result.state), wake)

    def _open_state(self, stored: pa.Table | None) -> pa.Table:
        if stored is None:
            return self.states.empty_table()
        if not stored.schema.equals(self.states):
            raise StateLayoutError(f"the state is stored as ({_text(stored.schema)}) and declared as ({_text(self.states)})")
        return stored

    def _check_state(self, state: Any) -> pa.Table:
        if not isinstance(state, pa.Table | pa.RecordBatch):
            raise WrongResultError(f"expected the state as a Table, got {type(state).__name__}")
        batches = state.to_batches() if isinstance(state, pa.Table) else [state]
        return pa.Table.from_batches([fit_batch(batch, self.states) for batch in batches], self.states).combine_chunks()


def _text(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)
