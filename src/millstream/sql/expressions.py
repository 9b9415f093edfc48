"""Shared by transforms over one input: their expressions as one query, so that columns and types are resolved in one way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from millstream.errors import nearest
from millstream.plan.components import Problem
from millstream.sql.check import columns
from millstream.sql.check.query import parse_query

_INPUT = "input"


def only_schema(inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
    """The schema of the only input, if known."""
    return next(iter(inputs.values()), None)


def quote(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def types_of(expressions: Mapping[str, str], schema: pa.Schema) -> pa.Schema | None:
    """Name → type of expressions over a schema; None when they cannot be resolved."""
    selected = ", ".join(f"{text} AS {quote(name)}" for name, text in expressions.items())
    return columns.analyse(parse_query(f"SELECT {selected} FROM {_INPUT}"), {_INPUT: schema}).output


def unknown_columns(texts: Iterable[tuple[str, str]], schema: pa.Schema | None) -> list[Problem]:
    """Columns that expressions read and the input does not have; each text comes with its field."""
    if schema is None:
        return []
    found = []
    for field, text in texts:
        wrong = columns.analyse(parse_query(f"SELECT {text} AS value FROM {_INPUT}"), {_INPUT: schema}).misnamed
        found += [Problem(each.code, each.message, field, each.help) for each in wrong if each.code == "MS024"]
    return found


def row_problems(texts: Iterable[tuple[str, str]], schema: pa.Schema | None) -> list[Problem]:
    """Problems of expressions over single rows: unknown columns, and constructs that need more than one row."""
    pairs = list(texts)
    found = []
    for field, text in pairs:
        if (query := parse_query(f"SELECT {text} AS value FROM {_INPUT}")).tree is not None and (needs := query.stateful()):
            help_ = "use `type: aggregate` or `type: window`, or a query with GROUP BY"
            found.append(Problem("MS030", f"{needs[0]} needs more than one row", field, help_))
    return found or unknown_columns(pairs, schema)


def unknown_names(names: Iterable[str], field: str, schema: pa.Schema | None) -> list[Problem]:
    if schema is None:
        return []
    known = {name.lower() for name in schema.names}
    return [Problem("MS024", f"unknown column `{name}`", field, nearest(name, schema.names)) for name in names if name.lower() not in known]
