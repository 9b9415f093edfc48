"""Shared by transforms over one input: their expressions as one query, so that columns and types are resolved in one way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from millstream.errors import nearest
from millstream.plan.components import Problem
from millstream.plan.expressions import quote_column
from millstream.sql.check import columns
from millstream.sql.check.query import parse_query

_INPUT = "input"


def only_schema(inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
    """The schema of the only input, if known."""
    return next(iter(inputs.values()), None)


def types_of(expressions: Mapping[str, str], schema: pa.Schema) -> pa.Schema | None:
    """Name → type of expressions over a schema; None when they cannot be resolved."""
    selected = ", ".join(f"{text} AS {quote_column(name)}" for name, text in expressions.items())
    return columns.analyse(parse_query(f"SELECT {selected} FROM {_INPUT}"), {_INPUT: schema}).output


def unknown_names(names: Iterable[str], field: str, schema: pa.Schema | None) -> list[Problem]:
    if schema is None:
        return []
    known = {name.lower() for name in schema.names}
    return [Problem("MS024", f"unknown column `{name}`", field, nearest(name, schema.names)) for name in names if name.lower() not in known]
