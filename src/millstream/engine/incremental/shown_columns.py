"""The columns of stored rows under the names that the query has for them, as far as it has any: they are stored by their places."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from millstream.checkpoint.incremental import Part
from millstream.engine.incremental.compilation import Compilation
from millstream.engine.incremental.operators.base import Operator
from millstream.engine.incremental.operators.inputs import Table
from millstream.engine.incremental.operators.summed_joins import SummedJoin
from millstream.engine.incremental.operators.sums import Sums

_SIDES = ("left", "right")
_ARRIVED = {"_at": "arrived (ms)"}


def with_names(parts: Iterable[Part], compilation: Compilation) -> tuple[Part, ...]:
    """The parts with the names of their columns."""
    return tuple(replace(part, names=_shown(part, _names(part, compilation))) for part in parts)


def _shown(part: Part, known: dict[str, str]) -> tuple[str, ...]:
    """A name for each column; one that two columns have is followed by its place."""
    names = [known.get(column, column) for column in part.columns]
    return tuple(f"{name} ({column})" if names.count(name) > 1 else name for name, column in zip(names, part.columns, strict=True))


def _names(part: Part, compilation: Compilation) -> dict[str, str]:
    number, _, store = part.name.partition(".")
    if not number.strip():
        return dict(_placed(compilation.names))
    if int(number) == len(compilation.operators):  # the final result, or the columns of a declared key
        return dict(_placed(column.name for column in compilation.root.step.columns) if store == "result" else _placed(compilation.names))
    return _of_operator(compilation.operators[int(number)], store)


def _of_operator(operator: Operator, store: str) -> dict[str, str]:
    if isinstance(operator, Sums):
        return {**{f"k{index}": str(key.name()) for index, key in enumerate(operator.keys)}, **operator.accumulators.labels}
    if isinstance(operator, Table):
        return dict(_placed(operator.feed.columns)) | _ARRIVED
    if isinstance(operator, SummedJoin) and store == _SIDES[operator.summed]:
        words = operator.accumulators.labels
        return dict(_placed([*(column.name for column in operator.grouped), *(words[name] for name in operator.accumulators.names)]))
    steps = {"input": operator.inputs[:1], **{side: operator.inputs[place : place + 1] for place, side in enumerate(_SIDES)}}
    step = steps[store][0].step if store in steps else operator.step
    return dict(_placed(column.name for column in step.columns)) | _ARRIVED


def _placed(names: Iterable[str]) -> Iterable[tuple[str, str]]:
    return ((f"c{index}", name) for index, name in enumerate(names))
