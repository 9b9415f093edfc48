"""A stream joined with a table that is read as a whole: copied into memory, read again when it is older than `refresh`.

No state is needed: the table is at hand when a row comes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pydantic import ValidationError

from millstream.errors import Diagnostic, RunError, nearest
from millstream.plan.components import NodeContext, Problem, Source
from millstream.registry import Registry
from millstream.transforms.interval_join import columns
from millstream.transforms.matching import match_problems

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from millstream.transforms.join import Join


def schema_of(join: Join) -> pa.Schema | None:
    source = _source(join)
    return source.output() if isinstance(source, Source) else None


def problems(join: Join, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
    source = _source(join)
    if isinstance(source, Problem):
        return [source]
    found = [Problem(p.code, f"the table: {p.message}", f"table.{p.field}", p.help) for p in source.problems({}, directory)]
    return found + match_problems(join.matching, {"left": inputs.get(join.left), "right": source.output()})


def apply(join: Join, frame: DataFrame, context: NodeContext) -> DataFrame:
    from pyspark.sql import functions as F

    table = _table(join, frame, context)
    joined = frame.alias("left").join(F.broadcast(table).alias("right"), F.expr(join.matching.condition), join.kind)
    return joined.select(*columns(join, frame.columns, table.columns))


def _table(join: Join, frame: DataFrame, context: NodeContext) -> DataFrame:
    """The table as it was read last, or anew when that is too long ago."""
    kept = context.memory.get("table")
    if kept is not None and (join.refresh is None or time.monotonic() - kept[0] < join.refresh.seconds):
        return kept[1]  # type: ignore[no-any-return]  # put there below
    source = _source(join)
    if isinstance(source, Problem):
        raise RunError(Diagnostic(source.code, source.message))
    # a copy, and not a cached frame: Spark would serve the old cache to the same plan read again
    table = frame.sparkSession.createDataFrame(source.table(frame.sparkSession, context).toArrow())
    context.memory["table"] = (time.monotonic(), table)
    return table


def _source(join: Join) -> Source | Problem:
    """The source that the table is written as."""
    options = dict(join.table or {})
    registry, name = Registry.installed(), str(options.pop("type", ""))
    model = registry.find("source", name)
    if model is None:
        return Problem("MS010", f"the table has the unknown type `{name}`", "table.type", nearest(name, registry.types("source")))
    if model.table is Source.table:
        return Problem("MS036", f"a `{name}` source cannot be read as a table", "table.type", "a `file` or `memory` source can")
    try:
        return model.model_validate(options)  # type: ignore[no-any-return]  # the registry gives classes of components
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        return Problem("MS008", f"the table's `{place}`: {first['msg'].lower()}", f"table.{place}")
