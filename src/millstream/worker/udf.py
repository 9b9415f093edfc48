"""Runs a user's function when SQL calls it: whole Arrow arrays in, one Arrow array out, checked.

This module is pickled to the workers with the function, so it imports nothing of Millstream. Notes on its exceptions name the function that
failed (`marks.py`). An aggregate gets lists: the values of all groups are in one flat array, and each group is a slice of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa

from millstream.worker import marks
from millstream.worker.masking import mask

FIRST_FIELD = "_millstream_1"


class WrongResultError(TypeError):
    """The function returned something that does not match its declaration."""


@dataclass(frozen=True)
class FunctionRunner:
    """One function and what is needed to call it."""

    name: str
    function: Callable[..., Any]
    kind: pa.DataType
    aggregate: bool
    directory: str
    hidden: tuple[str, ...] = ()
    """Values of secrets, which must not appear in errors."""

    def run(self, columns: tuple[pa.Array, ...]) -> pa.Array:
        """One result per row."""
        if self.directory not in sys.path:  # for modules that the function imports while it runs
            sys.path.insert(0, self.directory)
        try:
            return self._per_group(columns[0]) if self.aggregate else self._fit(self.function(*columns), len(columns[0]))
        except Exception as error:
            told = mask(error, self.hidden)
            told.add_note(marks.write(marks.FUNCTION, self.name))
            if isinstance(error, WrongResultError):
                told.add_note(marks.write(marks.WRONG_RESULT, str(error)))
            if told is not error:
                raise told from None
            raise

    def _fit(self, result: Any, length: int) -> pa.Array:
        if isinstance(result, pa.ChunkedArray):
            result = result.combine_chunks()
        if not isinstance(result, pa.Array):
            raise WrongResultError(f"expected a pyarrow Array, got {type(result).__name__}")
        if len(result) != length:
            raise WrongResultError(f"expected {length} values, one per row, got {len(result)}")
        try:
            return result if result.type.equals(self.kind) else result.cast(self.kind)
        except pa.ArrowException as error:
            raise WrongResultError(f"expected {self.kind}, got {result.type}: {error}") from None

    def _per_group(self, lists: pa.Array) -> pa.Array:
        results = [self.function(*values) for values in _groups(lists)]
        plain = [result.as_py() if isinstance(result, pa.Scalar) else result for result in results]
        try:
            return pa.array(plain, self.kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            kinds = ", ".join(sorted({type(result).__name__ for result in results}))
            raise WrongResultError(f"expected one value of type {self.kind} per group, got {kinds}: {error}") from None


def _groups(lists: pa.Array) -> Iterator[tuple[pa.Array, ...]]:
    """The arguments of each group, as slices."""
    offsets, values = lists.offsets.to_pylist(), lists.values
    spread = pa.types.is_struct(values.type) and values.type.num_fields > 0 and values.type.field(0).name == FIRST_FIELD
    columns = values.flatten() if spread else [values]
    for start, end in pairwise(offsets):
        yield tuple(column.slice(start, end - start) for column in columns)
