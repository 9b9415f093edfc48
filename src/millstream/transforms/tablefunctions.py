"""Functions on dynamic tables, made known to a Spark session for as long as a query is analysed.

The first time in a run the driver looks at the table itself: it is made where it is missing, and what can be wrong with it (a column,
a type, a password) is told before a worker meets it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.plan.columns import type_of
from millstream.plan.components import NodeContext, Problem
from millstream.plan.lookups import CHECK, calls_in, place_at
from millstream.plan.query import parse_query, tokens_of
from millstream.plan.tablejoins import joins_in
from millstream.plan.tables import LookupTable
from millstream.state.tables.keys import agrees, spark_name
from millstream.state.tables.spec import MissingTableError, TableSpec, Verb, open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_VERBS: tuple[Verb, ...] = ("check", "get", "rows")


def function_name(verb: str, table: str) -> str:
    """The name that Spark knows a function on a table by."""
    return f"_millstream_{verb}_{hashlib.sha256(table.encode()).hexdigest()[:16]}"


@contextmanager
def registered(session: SparkSession, text: str, tables: Mapping[str, LookupTable], context: NodeContext) -> Iterator[None]:
    """Within this, Spark can analyse a text that calls functions on tables."""
    wanted = [(table, verb) for table in tables.values() for verb in _VERBS if function_name(verb, table.name) in text]
    for table, verb in wanted:
        _register(session, table, verb, context)
    try:
        yield
    finally:
        for table, verb in wanted:
            session._jsparkSession.sessionState().catalog().dropTempFunction(function_name(verb, table.name), True)


def settled(table: LookupTable, context: NodeContext) -> tuple[TableSpec, pa.Schema]:
    """Where a table is and what it looks like, found once in a run."""
    known: dict[str, tuple[TableSpec, pa.Schema]] = context.shared.setdefault("tables", {})
    if table.name not in known:
        spec: TableSpec = table.component.spec(table.name, context)
        known[table.name] = spec, _looked_at(spec) if context.dry else _settled(spec)
    return known[table.name]


def _settled(spec: TableSpec) -> pa.Schema:
    store = open_store(spec)
    try:
        return store.settle()
    finally:
        store.close()


def _looked_at(spec: TableSpec) -> pa.Schema:
    """The table as it is, or as it would be made."""
    try:
        return _settled(replace(spec, owned=False))
    except MissingTableError:
        return pa.schema([pa.field(name, spec.types.get(name, pa.string())) for name in spec.names])


def key_problems(text: str, tables: Mapping[str, LookupTable], inputs: Mapping[str, pa.Schema | None]) -> list[Problem]:
    """Values that can never be a key, as far as types are known here."""
    query, tokens, found = parse_query(text), tokens_of(text), []
    for call in calls_in(text):
        table = tables.get(call.table or "")
        if table is None or query.tree is None:
            continue
        value = text[tokens[call.first + 3].end + 1 : tokens[call.last].start]
        kind = type_of(value, query, inputs)
        kind = kind.value_type if pa.types.is_list(kind) and call.verb == CHECK else kind
        if not agrees(kind, table.key_type):
            found.append(_mismatch(table, kind, place_at(text, tokens[call.first])))
    for join in joins_in(text, tables):
        kind = type_of(join.key, query, inputs)
        if not agrees(kind, tables[join.table].key_type):
            found.append(_mismatch(tables[join.table], kind, join.place))
    return found


def _mismatch(table: LookupTable, kind: pa.DataType, place: Any) -> Problem:
    message = f"the key of `{table.name}` is `{table.key_type}`, and it is looked up by `{kind}`"
    help_ = f"convert it: `CAST(… AS {spark_name(table.key_type)})`, or correct `key_type`"
    return Problem("MS132", message, "sql", help_, line=place.line, column=place.column, width=place.end - place.start)


def _register(session: SparkSession, table: LookupTable, verb: Verb, context: NodeContext) -> None:
    from pyspark.sql.pandas.functions import arrow_udf
    from pyspark.sql.pandas.types import from_arrow_type

    from millstream.state.tables.vectors import TableFunction

    function = TableFunction(*settled(table, context), verb)
    declare: Any = arrow_udf  # its stubs ask for a kind, at whose sight it warns
    udf = declare(lambda values: function(values), from_arrow_type(function.returns, prefer_timestamp_ntz=True))  # noqa: PLW0108 — Spark looks at the signature of a function
    # another look may give another answer: Spark must not take two looks for one
    session.udf.register(function_name(verb, table.name), udf.asNondeterministic())
