"""Runs a script on Arrow batches in Python's worker processes.

A batch goes to the engine as a whole and comes back as columns; the script's own failures are told row by row. A limit stops the engine:
the batch is then cut at the row at which the engine was, so that the rows before it are computed again and the row itself is tried at the
head of a batch. Only a row that meets a limit alone has failed. This module travels to workers by value (`pickling.py`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from millstream.worker import marks
from millstream.worker.archives import forget_archives
from millstream.worker.batches import REJECT, REJECT_TYPE, TRACED
from millstream.worker.masking import hide, mask
from millstream.worker.scripts.engines import LimitError, MissingEngineError, StartError
from millstream.worker.scripts.failures import (
    NO_ENGINE,
    NOT_STARTED,
    Fault,
    ScriptError,
    SourceLines,
    limit_met,
    raised,
    wrong_result,
)
from millstream.worker.scripts.pool import EngineSpec, Lender, lend
from millstream.worker.scripts.values import read_column, write_column

_ROWS = 10_000
_BYTES = 8 << 20
"""What one call gets at most: rows, and bytes of their columns."""
_LOG_LINES = 200
_ROW_WIDTH = 300


@dataclass(frozen=True)
class ScriptRunner:
    """One node's script and what is needed to run it."""

    spec: EngineSpec
    node: str
    schema: pa.Schema
    """The columns of the result, without those that stay with their rows."""
    isolate: bool
    whole: bool = False
    """The script gets all rows of a batch in one call."""
    kept: tuple[str, ...] = ()
    op: str = ""
    """The column with the op, of a changelog."""
    batch_size: int | None = None
    lines: SourceLines = field(default_factory=SourceLines)
    hidden: tuple[str, ...] = ()

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """All results, batch by batch."""
        try:
            with lend(self.spec) as lender:
                task = _Task(self, lender)
                for batch in batches:
                    for part in _cut(batch, self.batch_size):
                        yield from task.results(part)
        except Exception as error:
            told = mask(error, self.hidden)
            if isinstance(error, MissingEngineError | StartError):
                code = NO_ENGINE if isinstance(error, MissingEngineError) else NOT_STARTED
                told.add_note(marks.write(marks.SCRIPT, Fault(code, str(error).splitlines()[0]).as_mark("", 0)))
            told.add_note(marks.write(marks.NODE, self.node))
            if told is not error:
                raise told from None
            raise
        finally:
            forget_archives()


def _cut(batch: pa.RecordBatch, most: int | None) -> Iterator[pa.RecordBatch]:
    """The batch in parts that an engine can hold."""
    fitting = max(1, batch.num_rows * _BYTES // max(1, batch.nbytes))
    size = min(most or _ROWS, fitting)
    yield from (batch.slice(start, size) for start in range(0, batch.num_rows, size))


@dataclass(frozen=True)
class Done:
    """The results of the first rows of a part."""

    batches: list[pa.RecordBatch]
    rows: int


class _Task:
    """The work of one task: parts of batches, the engine, and how much has been logged."""

    def __init__(self, runner: ScriptRunner, lender: Lender) -> None:
        self._runner, self._lender, self._logged = runner, lender, 0
        self._first = 0
        self._silent = False
        """Whether it has been said that nothing more is logged."""
        self._full = False
        """Whether the last call came near the end of the memory."""
        self._traced = False
        """Whether the engine must know the row at which it meets a limit: this batch has met one."""

    def results(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """What a batch becomes. `waiting` are the parts that are not computed yet, the next one last."""
        waiting, self._traced = [batch], False
        while waiting:
            part = waiting.pop()
            answer = self._ask(part)
            if isinstance(answer, int):
                waiting += [part.slice(answer), part.slice(0, answer)]
                continue
            yield from answer.batches
            self._first += answer.rows
            if answer.rows < part.num_rows:
                waiting.append(part.slice(answer.rows))

    def _ask(self, part: pa.RecordBatch) -> Done | int:
        """The results of a part, or the row at which it must be cut."""
        runner, limits = self._runner, self._runner.spec.limits
        given = part.drop_columns([TRACED]) if TRACED in runner.kept else part
        request = json.dumps({"n": part.num_rows, "cols": [write_column(column) for column in given.columns]}, ensure_ascii=False)
        try:
            try:
                text = self._call(request, traced=self._traced)
            except LimitError as met:
                if not self._is_doubtful(part, met):
                    raise
                self._traced = True
                text = self._call(request, traced=True)
        except LimitError as met:
            return self._after_limit(part, met, limit_met(met.limit, limits.seconds, limits.memory, part.num_rows))
        return self._read(part, json.loads(text))

    def _is_doubtful(self, part: pa.RecordBatch, met: LimitError) -> bool:
        """Whether another call must tell the row; of a single row, whether it is at fault: its child may have been killed before."""
        if met.row is not None:
            return False
        return met.limit == "memory" if part.num_rows == 1 else not self._runner.whole and not self._traced

    def _call(self, request: str, *, traced: bool) -> str:
        try:
            text = self._lender.engine.call(request, self._runner.spec.limits, traced=traced)
        except BaseException:
            self._lender.discard()
            raise
        self._full = self._lender.engine.full
        if self._lender.engine.spent:
            self._lender.discard()
        return text

    def _after_limit(self, part: pa.RecordBatch, met: LimitError, fault: Fault) -> Done | int:
        if part.num_rows == 1:
            return Done([self._reject(part, 0, fault)], 1)
        known = met.row is not None and met.row < part.num_rows and not self._runner.whole
        if not known or met.row is None:
            return int(part.num_rows) // 2
        if met.row == 0 and met.limit != "memory":  # it had all the time for itself; memory holds the other rows too
            alone = limit_met(met.limit, self._runner.spec.limits.seconds, self._runner.spec.limits.memory, 1)
            return Done([self._reject(part, 0, alone)], 1)
        return met.row or 1

    def _read(self, part: pa.RecordBatch, answer: dict[str, Any]) -> Done | int:
        self._log(answer)
        thrown = next((row for row, kind, *_ in answer["errors"] if kind == "nothing"), None)
        if thrown is not None and self._full:
            limits = self._runner.spec.limits
            self._lender.discard()
            fault = limit_met("memory", limits.seconds, limits.memory, part.num_rows)
            return self._after_limit(part, LimitError("memory", thrown if thrown >= 0 else None), fault)
        if self._runner.whole and answer["errors"]:
            return self._after_failure(part, self._fault(answer["errors"][0]))
        failed = {index: self._fault(error) for error in answer["errors"] if (index := error[0]) >= 0}
        columns, misfits = self._columns(answer)
        if misfits and self._runner.whole:
            return self._after_failure(part, next(iter(misfits.values())))
        rows = answer["from"] or list(range(answer["n"]))
        failed |= {rows[at]: fault for at, fault in misfits.items()}
        left_out = {at for at, row in enumerate(rows) if row in failed} if misfits else set()
        if left_out:
            answer, rows = _without(answer, rows, left_out)
            columns, _ = self._columns(answer)
        rejects = [self._reject(part, index, failed[index]) for index in sorted(failed)]
        return Done([self._assemble(part, columns, rows, answer["from"] is None, answer["deleted"]), *rejects], part.num_rows)

    def _after_failure(self, part: pa.RecordBatch, fault: Fault) -> Done | int:
        """A function of batches has failed: halve until the row is found, if rejects are isolated."""
        if part.num_rows > 1 and self._runner.isolate:
            return int(part.num_rows) // 2
        return Done([self._reject(part, 0, fault)], 1)

    def _fault(self, error: list[Any]) -> Fault:
        _, kind, name, message, stack = error
        hidden, lines = self._runner.hidden, self._runner.lines
        if kind == "result":
            return wrong_result(hide(message, hidden), stack, lines)
        return raised(hide(name, hidden), hide(message, hidden), stack, lines)

    def _columns(self, answer: dict[str, Any]) -> tuple[list[pa.Array], dict[int, Fault]]:
        """The columns, and the results that do not fit their types."""
        columns: list[pa.Array] = []
        misfits: dict[int, Fault] = {}
        for column, wanted in zip(answer["cols"], self._runner.schema, strict=True):
            try:
                columns.append(read_column(column, wanted.type))
            except (pa.ArrowException, ValueError, OverflowError):
                misfits |= self._misfits(column, wanted)
        return columns, misfits

    def _misfits(self, column: dict[str, Any], wanted: pa.Field) -> dict[int, Fault]:
        found: dict[int, Fault] = {}
        for at, value in enumerate(column["v"]):
            try:
                read_column({"w": column["w"], "v": [value]}, wanted.type)
            except (pa.ArrowException, ValueError, OverflowError) as error:
                reason = str(error).splitlines()[0]
                found[at] = wrong_result(hide(f"field `{wanted.name}`: {reason}", self._runner.hidden), "", self._runner.lines)
        return found

    def _assemble(
        self, part: pa.RecordBatch, columns: list[pa.Array], rows: list[int], straight: bool, deleted: list[int]
    ) -> pa.RecordBatch:
        runner = self._runner
        same = straight and not runner.whole and len(rows) == part.num_rows
        places = pa.array(rows, pa.int64()) if not same else None
        kept = []
        for name in runner.kept:
            column = part.column(name)
            if runner.whole:
                column = pa.nulls(len(rows), column.type)
            elif places is not None:
                column = column.take(places)
            if name == runner.op and deleted:
                gone = set(deleted)
                column = pa.array(["d" if at in gone else op for at, op in enumerate(column.to_pylist())], column.type)
            kept.append(column)
        names = [*runner.schema.names, *runner.kept]
        arrays = [*columns, *kept]
        if runner.isolate:
            names.append(REJECT)
            arrays.append(pa.nulls(len(rows), REJECT_TYPE))
        return pa.RecordBatch.from_arrays(arrays, names)

    def _reject(self, part: pa.RecordBatch, index: int, fault: Fault) -> pa.RecordBatch:
        """The row as a reject; without isolation it is the end."""
        runner, row = self._runner, part.slice(index, 1)
        values = {name: value for name, value in row.to_pylist()[0].items() if name != TRACED}
        raw = json.dumps(values, default=str, ensure_ascii=False)
        if not runner.isolate:
            error = ScriptError(fault.text)
            shown = hide(raw if len(raw) <= _ROW_WIDTH else f"{raw[:_ROW_WIDTH]}…", runner.hidden)
            error.add_note(marks.write(marks.SCRIPT, fault.as_mark(shown, self._first + index + 1)))
            raise error
        fields = [*runner.schema, *(part.schema.field(name) for name in runner.kept)]
        reject = pa.array([{"raw": raw, "error": fault.text}], REJECT_TYPE)
        return pa.RecordBatch.from_arrays([*(pa.nulls(1, each.type) for each in fields), reject], [*(each.name for each in fields), REJECT])

    def _log(self, answer: dict[str, Any]) -> None:
        """What the script says goes to the worker's standard error, which is in the pipeline's log."""
        for level, text in answer["log"]:
            if self._logged < _LOG_LINES:
                sys.stderr.write(f"{level}: script `{self._runner.node}`: {hide(text, self._runner.hidden)}\n")
            self._logged += 1
        if answer["unlogged"] and self._logged <= _LOG_LINES:
            sys.stderr.write(f"info: script `{self._runner.node}`: {answer['unlogged']} more lines are left out\n")
        elif self._logged > _LOG_LINES and not self._silent:
            self._silent = True
            sys.stderr.write(f"info: script `{self._runner.node}`: all further lines of this task are left out\n")


def _without(answer: dict[str, Any], rows: list[int], left_out: set[int]) -> tuple[dict[str, Any], list[int]]:
    """The answer without some of its rows."""
    good = [at for at in range(answer["n"]) if at not in left_out]
    columns = [{"w": column["w"], "v": [column["v"][at] for at in good]} for column in answer["cols"]]
    renumbered = {old: new for new, old in enumerate(good)}
    deleted = [renumbered[at] for at in answer["deleted"] if at in renumbered]
    kept_rows = [rows[at] for at in good]
    return {**answer, "n": len(good), "cols": columns, "from": kept_rows, "deleted": deleted}, kept_rows
