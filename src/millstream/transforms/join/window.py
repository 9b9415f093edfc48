"""Joins streams by key and window: one aggregate over all of them collects each input's rows, and the closed window pairs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from millstream.keyed.keys import key_problems
from millstream.plan.components import NodeContext, Problem
from millstream.plan.event_time import TIMESTAMP
from millstream.plan.expressions import quote_column
from millstream.plan.windows import SessionWindow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from millstream.transforms.join.join import Join

_TIME, _WINDOW = "_time", "_window"


def problems(join: Join, inputs: Mapping[str, pa.Schema | None]) -> list[Problem]:
    found = []
    if not isinstance(join.on, tuple) and not join.on.isidentifier():
        found.append(Problem("MS027", "a window join needs columns that all inputs have", "on", "write a list of names: `on: [id]`"))
        return found
    if len(inputs) < 2:
        found.append(Problem("MS033", "a window join takes at least 2 inputs", "from", "add them: `from: [a, b]`"))
    if join.kind == "right":
        found.append(Problem("MS008", "a window join is `inner`, `left` or `full`", "kind", "put that input first, and use `left`"))
    for name, schema in inputs.items():
        found += [Problem(p.code, f"{p.message} in `{name}`", p.field, p.help) for p in key_problems(_keys(join), "on", {name: schema})]
    kinds = {
        key: {schema.field(key).type for schema in inputs.values() if schema is not None and key in schema.names} for key in _keys(join)
    }
    for key, types in kinds.items():
        if len(types) > 1:
            found.append(Problem("MS035", f"`{key}` is {' and '.join(sorted(map(str, types)))}: rows never match", "on", "cast it before"))
    return found


def output(join: Join, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
    schemas = {name: schema for name, schema in inputs.items() if schema is not None}
    keys = _keys(join)
    if len(schemas) < len(inputs) or not schemas or any(key not in schema.names for schema in schemas.values() for key in keys):
        return None
    names = _names(join, {name: schema.names for name, schema in schemas.items()})
    first = next(iter(schemas.values()))
    edges = [pa.field(edge, TIMESTAMP) for edge in ("window_start", "window_end")]
    return pa.schema(
        [*(first.field(key) for key in keys), *edges]
        + [pa.field(new, schemas[name].field(old).type) for name, pairs in names.items() for old, new in pairs]
    )


def apply(join: Join, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
    from pyspark.sql import functions as F

    keys, names = _keys(join), _names(join, {name: frame.columns for name, frame in frames.items()})
    sides = []
    for index, (name, frame) in enumerate(frames.items()):
        time = F.col(quote_column(context.event_times[name])).alias(_TIME)
        packed = F.struct(*[F.col(quote_column(old)).alias(new) for old, new in names[name]]).alias(f"_{index}")
        present = frame.where(" AND ".join(f"{quote_column(key)} IS NOT NULL" for key in keys))
        sides.append(present.select(*[F.col(quote_column(key)) for key in keys], time, packed))
    together = reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), sides)
    collected = [F.collect_list(f"_{index}").alias(f"_{index}") for index in range(len(sides))]
    closed = together.groupBy(*[F.col(quote_column(key)) for key in keys], F.expr(_window_sql(join)).alias(_WINDOW)).agg(*collected)
    for index in range(len(sides)):
        lonely = join.kind == "full" or (join.kind == "left" and index > 0)
        closed = closed.withColumn(f"_{index}", (F.explode_outer if lonely else F.explode)(f"_{index}"))
    edges = [f"{_WINDOW}.start AS window_start", f"{_WINDOW}.end AS window_end"]
    columns = [f"_{index}.{quote_column(new)}" for index, pairs in enumerate(names.values()) for _, new in pairs]
    return closed.selectExpr(*map(quote_column, keys), *edges, *columns)


def _window_sql(join: Join) -> str:
    window = join.window
    assert window is not None
    if isinstance(window, SessionWindow):
        return f"session_window({_TIME}, {window.gap_sql})"
    lengths = (window.size.milliseconds, window.step_ms, window.offset.milliseconds)
    spans = ", ".join(f"'{length} milliseconds'" for length in lengths)
    return f"window({_TIME}, {spans})"


def _keys(join: Join) -> tuple[str, ...]:
    return join.on if isinstance(join.on, tuple) else (join.on,)


def _names(join: Join, columns: Mapping[str, list[str]]) -> dict[str, list[tuple[str, str]]]:
    """Input → its columns and their names in the result."""
    keys = set(_keys(join))
    counts = Counter(name for names in columns.values() for name in names if name not in keys)
    taken = {"window_start", "window_end"}
    return {
        source: [
            (name, f"{source.replace('.', '_')}_{name}" if counts[name] > 1 or name in taken else name)
            for name in names
            if name not in keys
        ]
        for source, names in columns.items()
    }
