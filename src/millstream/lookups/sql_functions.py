"""Registers the functions on dynamic tables in a Spark session while a query is analysed.

The first time in a run the driver opens the table itself: it creates a missing table and reports problems (a column, a type, a password)
before a worker sees them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.lookups.keys import agrees, spark_name
from millstream.lookups.table import LookupTableRun, MissingTableError, TableSpec, Verb, open_store
from millstream.plan.components import NodeContext, Problem
from millstream.plan.lookup_tables import LookupTable
from millstream.sql.check.columns import type_of
from millstream.sql.check.lookups import CHECK, calls_in, place_at
from millstream.sql.check.query import parse_query, tokens_of
from millstream.sql.check.table_joins import joins_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_VERBS: tuple[Verb, ...] = ("check", "get", "rows")


def function_name(verb: str, table: str) -> str:
    """The Spark name of a function on a table."""
    return f"_millstream_{verb}_{hashlib.sha256(table.encode()).hexdigest()[:16]}"


@contextmanager
def table_functions_registered(
    session: SparkSession, functions: Collection[tuple[str, str]], tables: Mapping[str, LookupTable], context: NodeContext
) -> Iterator[None]:
    """Spark can analyse plans that call these functions on tables, each a verb and a table, while the body runs."""
    wanted = [(table, verb) for table in tables.values() for verb in _VERBS if (verb, table.name) in functions]
    for table, verb in wanted:
        _register(session, table, verb, context)
    try:
        yield
    finally:
        for table, verb in wanted:
            session._jsparkSession.sessionState().catalog().dropTempFunction(function_name(verb, table.name), True)


def ensure(spec: TableSpec, dry: bool) -> pa.Schema:
    """The schema of a table, which is created if missing, unless the plan is only analysed."""
    if not dry:
        return _open_and_ensure(spec)
    try:
        return _open_and_ensure(replace(spec, owned=False))
    except MissingTableError:
        return pa.schema([pa.field(name, spec.types.get(name, pa.string())) for name in spec.names])


def _open_and_ensure(spec: TableSpec) -> pa.Schema:
    store = open_store(spec)
    try:
        return store.ensure()
    finally:
        store.close()


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
    message = f"the key of `{table.name}` is `{table.key_type}`, but it is looked up by `{kind}`"
    help_ = f"convert it: `CAST(… AS {spark_name(table.key_type)})`, or correct `key_type`"
    return Problem("MS132", message, "sql", help_, line=place.line, column=place.column, width=place.end - place.start)


def _register(session: SparkSession, table: LookupTable, verb: Verb, context: NodeContext) -> None:
    from pyspark.sql.pandas.functions import arrow_udf
    from pyspark.sql.pandas.types import from_arrow_type

    from millstream.lookups.vectors import TableFunction

    run = context.find_table(table.name)
    assert isinstance(run, LookupTableRun)
    function = TableFunction(*run.resolve(), verb)
    declare: Any = arrow_udf  # its stubs ask for a kind, at whose sight it warns
    udf = declare(lambda values: function(values), from_arrow_type(function.returns, prefer_timestamp_ntz=True))  # noqa: PLW0108 — Spark looks at the signature of a function
    # a second lookup may return something else: Spark must not merge two calls into one
    session.udf.register(function_name(verb, table.name), udf.asNondeterministic())
