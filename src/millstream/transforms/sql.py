"""A query in Spark SQL. Its text reaches Spark as it was written; only the names of nodes become names of views."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import pyarrow as pa
from pydantic import Field, PrivateAttr
from sqlglot import exp

from millstream.errors import Diagnostic, RunError
from millstream.logical import plans
from millstream.logical.gate import Carriers, Refusal, per_epoch, totals, windowed
from millstream.plan.alternatives import instead
from millstream.plan.calls import collected
from millstream.plan.carrying import carrying, lost
from millstream.plan.changelog import OP, carried
from millstream.plan.columns import analyse
from millstream.plan.components import NodeContext, OutputMode, Problem, Windowed
from millstream.plan.dialects import foreign_words
from millstream.plan.lateness import closes
from millstream.plan.lookups import calls_in, table_problems, uses, with_functions
from millstream.plan.macros import expand
from millstream.plan.outcomes import letter_of
from millstream.plan.query import Place, Query, freeze_clock, parse_query, place_between
from millstream.plan.splitting import PART, Split, split, totals_key, window_of
from millstream.plan.syntax import Fault
from millstream.plan.tablejoins import joins_in, with_views
from millstream.plan.tables import LookupTable
from millstream.transforms.isolation import isolated
from millstream.transforms.tablefunctions import function_name, key_problems, registered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WINDOWS = "windows"
"""What a node remembers from building its stream: the columns of each part that carry a window."""
_MULTIPLYING = re.compile(r"\b(explode|posexplode|inline|stack|json_tuple|variant_explode)(_outer)?\s*\(", re.IGNORECASE)


class Sql(Windowed):
    """Runs one `SELECT` of Spark SQL. The query names its inputs itself, dots included. Common table expressions, `UNION ALL` of
    several inputs, `LATERAL VIEW explode` and every function of Spark can be used; `now()` means the time of the epoch.
    `dynamic_table_check('t', value)`, `dynamic_table_get('t', key)` and `LEFT JOIN t ON …` look rows up in a `dynamic_table`.

    `GROUP BY window(at, '1 hour')` or `session_window(at, '30 minutes')` adds rows up by event time; its edges are `window.start` and
    `window.end`. What stands above such an aggregate and goes window by window (`ROW_NUMBER`, `COUNT(DISTINCT …)`, an aggregate over it, a
    join on the window) works too. An aggregate without a window keeps running totals and gives a changelog (`_op`).

    Over a changelog, `_op` and `_seq` stay with their rows whether the query names them or not, and a row that an update takes out of
    `WHERE` leaves as a delete.
    """

    type: ClassVar[str] = "sql"
    shaped_by: ClassVar[frozenset[str]] = frozenset({"sql"})
    real_time: ClassVar[bool] = True
    summary: ClassVar[str] = "Filter, compute, aggregate and combine with Spark SQL."
    example: ClassVar[str] = """
        large:
          type: sql
          sql: SELECT id, user, amount FROM raw.orders WHERE amount > 1000
    """
    arity: ClassVar[tuple[int, int | None]] = (1, None)

    sql: Annotated[str, Field(min_length=1)]
    """The query."""
    _tables: dict[str, LookupTable] = PrivateAttr(default_factory=dict)

    def bound(self, tables: Mapping[str, LookupTable]) -> Sql:
        if not tables and not self._tables:
            return self
        copy = self.model_copy()
        copy._tables = dict(tables)
        return copy

    def spelt(self, names: Iterable[str]) -> Sql:
        text = self.query.spelt(names)
        return self if text == self.sql else self.model_copy(update={"sql": text})

    @property
    def waits(self) -> bool:
        return self.split.kind != "stateless"

    @property
    def looks_into(self) -> tuple[str, ...]:
        called = [call.table for call in calls_in(self.sql) if call.table in self._tables]
        return tuple(dict.fromkeys([*called, *(join.table for join in joins_in(self.sql, self._tables))])) if self._tables else ()

    def mentions(self, name: str) -> Iterable[tuple[str, Place]]:
        return [("sql", reference.place) for reference in self.query.references if reference.name == name]

    @property
    def readable(self) -> bool:
        return self.query.tree is not None

    @property
    def query(self) -> Query:
        return parse_query(self.sql)

    @property
    def text(self) -> str:
        """The query as it runs: without joins on dynamic tables, which are no streams."""
        return with_views(self.sql, self._tables, function_name) if self._tables else self.sql

    @property
    def split(self) -> Split:
        return split(self.text)

    @property
    def deterministic(self) -> bool:
        return self.query.deterministic and not uses(self.sql, self._tables)

    @property
    def renewed(self) -> bool:
        return uses(self.sql, self._tables)

    @property
    def stateful(self) -> bool:
        return self.split.kind in {"windowed", "running"}

    @property
    def output_mode(self) -> OutputMode:
        return "update" if self.split.kind == "running" else "append"

    @property
    def identity(self) -> tuple[str, ...]:
        tree = parse_query(self.text).tree
        return totals_key(tree, self.split.selects[0]) or () if self.split.kind == "running" and tree is not None else ()

    @property
    def finishes(self) -> bool:
        return bool(self.split.rest)

    def tables(self) -> tuple[str, ...]:
        return self.query.tables

    def closes(self, input_name: str, event_time: str) -> str:
        return closes(self.split, input_name)

    def reads(self, input_name: str, isolating: bool) -> int:
        texts = self.split.parts or (self.text,)
        return max(1, sum(reference.name == input_name for text in texts for reference in parse_query(text).references))

    def output(self, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
        changes = {name: carried(schema.names) for name, schema in inputs.items() if schema is not None}
        schema = analyse(parse_query(carrying(self.sql, changes)), inputs).output
        return schema.append(pa.field(OP, pa.string())) if schema is not None and self.split.kind == "running" else schema

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        query = self.query
        if query.tree is None:
            return [_unparsed(query, bool(inputs))]
        if foreign := foreign_words(query):
            return [_placed(Problem("MS162", each.message, "sql", each.help), each.place) for each in foreign]
        if wrong := list(table_problems(self.sql, self._tables)):
            return wrong
        if refusal := self.split.refusal:
            return [_placed(Problem("MS030", refusal.reason, "sql", instead(refusal.reason)), refusal.place)]
        if letter_of(self.late) and self.stateful and not any(self.closes(name, "") for name in self.tables()):
            help_ = "group by `window(column, 'size')` of a plain SELECT, or use a `window` transform"
            return [Problem("MS036", "late rows of this query cannot be told apart", "late", help_)]
        wrong = [_placed(Problem(each.code, each.message, "sql", each.help), each.place) for each in analyse(query, inputs).misnamed]
        return wrong or key_problems(self.sql, self._tables, inputs)

    def refuses_isolation(self) -> str:
        tree = parse_query(self.text).tree
        help_ = "put the part that can fail into a query of its own: SELECT … FROM one input WHERE …"
        if self.stateful:
            return f"bad rows cannot be told apart in an aggregate; {help_}"
        if (
            not isinstance(tree, exp.Select)
            or len(self.query.references) != 1
            or tree.args.get("laterals")
            or tree.find(exp.Subquery, exp.Join)
        ):
            return f"bad rows cannot be told apart in this query; {help_}"
        if self.renewed:
            return f"bad rows cannot be told apart where a dynamic table is asked; {help_}"
        if tree.find(exp.CTE) or _MULTIPLYING.search(self.sql):
            return f"bad rows cannot be told apart where one row becomes several; {help_}"
        return ""

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        from pyspark.sql import functions as F

        changes = {name: carried(frame.columns) for name, frame in frames.items()}
        kind, parts = self.split.kind, self.split.parts or (carrying(self.text, changes),)
        results = [_run(expand(part) if self.stateful else part, frames, context, self._tables) for part in parts]
        if kind == "windowed":
            context.memory[_WINDOWS] = [_windows(part, result, frames, context) for part, result in zip(parts, results, strict=True)]
        if self.finishes:
            return _tagged(results)
        (result,) = results
        if kind == "running":
            _require_key(result, self.identity, context)
        if any(changes.values()):
            _require_changes(self.text, changes, result.columns, context)
        result = result.withColumn(OP, F.lit("u")) if kind == "running" else result
        return isolated(result, context.name) if context.isolate else result

    def finish(self, frame: DataFrame, context: NodeContext) -> DataFrame:
        parts = {f"{PART}{index}": frame.where(f"_part = {index}").select(f"_p{index}.*") for index in range(len(self.split.parts))}
        result = _run(self.split.rest, parts, context, self._tables)
        if found := context.memory.pop(_WINDOWS, None):
            _require_windows(result, {_view(context.name, name): carriers for name, carriers in zip(parts, found, strict=True)}, context)
        return result


def _run(sql: str, frames: Mapping[str, DataFrame], context: NodeContext, tables: Mapping[str, LookupTable]) -> DataFrame:
    """The result of a query over frames, which it sees under the names of its tables."""
    session = next(iter(frames.values())).sparkSession
    views = {name: _view(context.name, name) for name in frames}
    text = collected(freeze_clock(sql, context.clock) if context.clock else sql, context.aggregates)
    text = with_functions(text, function_name) if tables else text
    for name, frame in frames.items():
        frame.createOrReplaceTempView(views[name])
    try:
        with registered(session, text, tables, context):
            return session.sql(parse_query(text).with_views(views))
    finally:
        catalog = session._jsparkSession.sessionState().catalog()
        for view in views.values():  # not through the public catalog: that would also unpersist what the view shows
            catalog.dropTempView(view)


def _windows(part: str, result: DataFrame, frames: Mapping[str, DataFrame], context: NodeContext) -> Carriers:
    """The columns of a windowed aggregate that carry its window."""
    found = windowed(result, window_of(part, [name for name, frame in frames.items() if plans.remembers(frame)]))
    if isinstance(found, Refusal):
        raise _refused(found, context)
    return found


def _require_windows(result: DataFrame, inputs: Mapping[str, Carriers], context: NodeContext) -> None:
    """What is left to do per epoch goes window by window."""
    if refusal := per_epoch(result, inputs):
        raise _refused(refusal, context)


def _require_key(result: DataFrame, identity: tuple[str, ...], context: NodeContext) -> None:
    """Running totals hold what they are grouped by, so that a later row can replace an earlier one."""
    found = totals(result)
    if isinstance(found, Refusal):
        raise _refused(found, context)
    unmatched = [columns for columns in found if identity and not columns.intersection(identity)]
    if not all(found) or unmatched or not frozenset(identity) <= frozenset().union(*found):
        raise _refused(
            Refusal("the result lacks a column that its rows are grouped by, so a later row could not replace an earlier one"), context
        )


def _refused(refusal: Refusal, context: NodeContext) -> RunError:
    return RunError(Diagnostic("MS030", f"`{context.name}`: {refusal.reason}"))


def _require_changes(sql: str, changes: Mapping[str, tuple[str, ...]], columns: list[str], context: NodeContext) -> None:
    if reason := lost(sql, changes, columns):
        help_ = "write it as plain SELECTs, or name `_op` in it to say what becomes of updates and deletes"
        raise RunError(Diagnostic("MS030", f"`{context.name}`: {reason}", help=help_))


def _tagged(parts: list[DataFrame]) -> DataFrame:
    """Several aggregates in one stream, told apart by number, each in a struct of its own."""
    from pyspark.sql import functions as F

    tagged = [part.select(F.lit(index).alias("_part"), F.struct("*").alias(f"_p{index}")) for index, part in enumerate(parts)]
    return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), tagged)


def _view(node: str, table: str) -> str:
    """A name of its own for each input of each node."""
    return f"_millstream_{hashlib.sha256(f'{node}/{table}'.encode()).hexdigest()[:16]}"


def _unparsed(query: Query, wired: bool) -> Problem:
    """What Spark might understand is a warning, where the node says itself what it reads; all else is an error."""
    fault = query.fault or Fault("not understood")
    place = place_between(query.text, fault.start, fault.end) if fault.end else None
    if fault.certain:
        return _placed(Problem("MS158", f"syntax error in SQL: {fault.reason}", "sql", fault.help), place)
    if wired:
        message = f"the query could not be checked here: {fault.reason}"
        return _placed(Problem("MS028", message, "sql", "Spark has the last word when it runs", "warning"), place)
    help_ = fault.help or "if this is right in Spark, say what the query reads with `from: NODE`"
    return _placed(Problem("MS158", f"syntax error in SQL: {fault.reason}", "sql", help_), place)


def _placed(problem: Problem, place: Place | None) -> Problem:
    if place is None:
        return problem
    return Problem(
        problem.code, problem.message, problem.field, problem.help, problem.level, place.line, place.column, place.end - place.start
    )
