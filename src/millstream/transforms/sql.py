"""A query in Spark SQL. Its text goes to Spark as it is: names, calls, dynamic tables, changelogs and windows are handled in Spark's plan
(`sql/catalyst`, `sql/analysed`). The text is only looked at to predict how the query will run (`sql/check`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from functools import reduce
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple, Self

import pyarrow as pa
from pydantic import Field, PrivateAttr
from sqlglot import exp

from millstream.errors import Diagnostic, PlanMismatchError, RunError
from millstream.lookups.sql_functions import function_name, key_problems, table_functions_registered
from millstream.plan.changelog import OP, OPS, kept_columns, table_of
from millstream.plan.components import (
    ONCE,
    EpochTail,
    Expiring,
    NamesInputs,
    NodeContext,
    Origins,
    OutputMode,
    Problem,
    TextPlace,
    TransformRun,
    Windowed,
)
from millstream.plan.error_policy import dead_letter_sink_of
from millstream.plan.lookup_tables import LookupTable
from millstream.sql.analysed import parts
from millstream.sql.analysed.gate import Carriers, Refusal, inexact, per_epoch, totals, window_columns
from millstream.sql.analysed.isolation import isolate_rejects
from millstream.sql.catalyst import names
from millstream.sql.catalyst.aggregates import stream_aggregates
from millstream.sql.catalyst.bridge import Bridge
from millstream.sql.catalyst.calls import Rewrites, rewrite_plan
from millstream.sql.catalyst.changelog import Carried, Carrying, carry, lost
from millstream.sql.catalyst.clock import freeze
from millstream.sql.catalyst.lookups import look_up
from millstream.sql.catalyst.user_aggregates import collecting
from millstream.sql.check.alternatives import alternative_to
from millstream.sql.check.changelog import names_op, with_carried_columns
from millstream.sql.check.column_counts import find_uneven
from millstream.sql.check.columns import analyse
from millstream.sql.check.cross_joins import find_cross_joins
from millstream.sql.check.dialects import foreign_words
from millstream.sql.check.lookups import calls_in, table_problems, uses
from millstream.sql.check.origins import origins_of
from millstream.sql.check.prediction import Prediction, cannot_be_kept, predict, totals_key
from millstream.sql.check.query import Query, parse_query, place_between
from millstream.sql.check.result_names import find_repeated_names
from millstream.sql.check.selects import window_calls
from millstream.sql.check.syntax import Fault
from millstream.sql.check.table_joins import joins_in, without_joins
from millstream.sql.check.varying import CLOCK_NAMES, find_varying

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MULTIPLYING = re.compile(r"\b(explode|posexplode|inline|stack|json_tuple|variant_explode)(_outer)?\s*\(", re.IGNORECASE)


class Sql(NamesInputs, EpochTail, Windowed, Expiring):
    """Runs one `SELECT` of Spark SQL. The query names its inputs, including dots. Common table expressions, `UNION ALL` of several
    inputs, `LATERAL VIEW explode` and every function of Spark can be used; `now()` is the time of the epoch. `dynamic_table_check('t',
    value)`, `dynamic_table_get('t', key)` and `LEFT JOIN t ON …` look up rows in a `dynamic_table`.

    `GROUP BY window(at, '1 hour')` or `session_window(at, '30 minutes')` aggregates by event time; its edges are `window.start` and
    `window.end`. Steps over such an aggregate that work window by window (`ROW_NUMBER`, `COUNT(DISTINCT …)`, an aggregate over it, a join
    on the window) are supported too. An aggregate without a window keeps running totals and returns a changelog (`_op`).
    Every other query, with joins, HAVING, DISTINCT, LIMIT or subqueries, is kept up to date from the changes of its inputs and
    returns a changelog too: docs/sql.md says what is kept.
    Over a changelog, `_op` and `_seq` stay with their rows whether the query names them or not, and a row that an update moves out of
    `WHERE` becomes a delete.
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
    text_files: ClassVar[Mapping[str, str]] = {"sql_file": "sql"}

    sql: Annotated[str, Field(min_length=1)]
    """The query."""
    emit: Literal["changes", "final"] | None = None
    """`changes`: the query is kept up to date and returns the changes of its result, also where its windows could be returned once.
    `final`: with bounded inputs, the result as it is at their end, once, as plain rows and in the order of ORDER BY. Default: the results
    of windows once, when they close, and the changes of every other result."""
    _tables: dict[str, LookupTable] = PrivateAttr(default_factory=dict)
    _misjudged: bool = PrivateAttr(default=False)
    """Whether Spark's plan showed that the text misled: the query is kept up to date."""

    @property
    def lookups(self) -> Mapping[str, LookupTable]:
        """The dynamic tables of the pipeline."""
        return self._tables

    def with_tables(self, tables: Mapping[str, LookupTable]) -> Self:
        if not tables and not self._tables:
            return self
        copy = self.model_copy()
        copy._tables = dict(tables)
        return copy

    @property
    def kind(self) -> Literal["stateless", "windowed", "running", "incremental", "refused"]:
        """How the query runs."""
        kind = self.prediction.kind
        asked = kind in {"changes": ("stateless", "windowed"), "final": ("stateless",)}.get(self.emit or "", ())
        if (asked or self._misjudged) and not cannot_be_kept(self.query):
            return "incremental"
        if kind in {"stateless", "refused"} and not (kind == "stateless" and self._multiplies):
            return kind
        applied = self._over_changes and not names_op(self.sql)
        totals = kind == "running" and (self._over_state or self.emit == "final" or self.ttl is not None)
        return "incremental" if applied or totals else kind

    @property
    def _multiplies(self) -> bool:
        """Whether one row may become several."""
        tree = self.query.tree
        steps = (exp.Lateral, exp.Unnest) if uses(self.sql, self._tables) else (exp.Lateral, exp.Unnest, exp.Join)
        return bool(_MULTIPLYING.search(self.sql)) or (tree is not None and tree.find(*steps) is not None)

    @property
    def incremental(self) -> bool:
        return self.kind == "incremental"

    @property
    def keeps_changes(self) -> bool:
        tree = self.query.tree
        if not names_op(self.sql) or not isinstance(tree, exp.Query) or tree.is_star:
            return True
        return any(name in OPS for name in tree.named_selects)

    def kept_up_to_date(self) -> Self | None:
        kept = self.model_copy()
        kept._misjudged = True
        return kept if kept.incremental and not self.incremental else None

    @property
    def final(self) -> bool:
        return self.incremental and (self.emit == "final" or self._returned_once)

    def returned_once(self) -> Self | None:
        return super().returned_once() if self.emit is None else None

    @property
    def why_incremental(self) -> str:
        if not self.incremental:
            return ""
        if self._returned_once:
            return ONCE
        if self.prediction.kind in {"running", "stateless"} and self.emit == "final":
            return "its result is returned once"
        if self.prediction.kind == "running" and self.ttl is not None:
            return "its rows expire"
        if self.prediction.kind in {"stateless", "windowed"} and self.emit == "changes":
            return "`emit: changes`"
        if self._misjudged:
            return "Spark's plan needs rows of several epochs"
        refusal = self.prediction.refusal
        if refusal is not None and self.prediction.kind == "incremental":
            reason = refusal.reason.replace(" must have the window in its ", " without the window in its ")
            return reason.replace(" is not supported yet", "").replace(" without a window", "")
        return "an input is a changelog" if self._over_changes else "totals over a node that keeps state"

    def with_node_names(self, names: Iterable[str]) -> Self:
        text = self.query.with_node_names(names)
        return self if text == self.sql else self.model_copy(update={"sql": text})

    @property
    def waits(self) -> bool:
        return self.kind not in {"stateless", "incremental"} or self.native_parts

    @property
    def lookup_names(self) -> tuple[str, ...]:
        called = [call.table for call in calls_in(self.sql) if call.table in self._tables]
        return tuple(dict.fromkeys([*called, *(join.table for join in joins_in(self.sql, self._tables))])) if self._tables else ()

    def mentions(self, name: str) -> Iterable[tuple[str, TextPlace]]:
        return [("sql", reference.place) for reference in self.query.references if reference.name == name]

    @property
    def readable(self) -> bool:
        return self.query.tree is not None

    @property
    def query(self) -> Query:
        return parse_query(self.sql)

    @property
    def prediction(self) -> Prediction:
        return predict(self.sql, frozenset(self._tables))

    @property
    def deterministic(self) -> bool:
        return self.query.deterministic and not uses(self.sql, self._tables)

    @property
    def rebuilt_per_epoch(self) -> bool:
        return uses(self.sql, self._tables)

    @property
    def stateful(self) -> bool:
        return self.kind in {"windowed", "running", "incremental"}

    @property
    def needs_event_time(self) -> bool:
        return self.kind == "windowed"

    @property
    def output_mode(self) -> OutputMode:
        return "update" if self.kind == "running" else "append"

    @property
    def result_key(self) -> tuple[str, ...]:
        tree = without_joins(self.sql, frozenset(self._tables)).tree
        return totals_key(tree, self.prediction.selects[0]) or () if self.kind == "running" and tree is not None else ()

    @property
    def has_tail(self) -> bool:
        return self.prediction.has_tail and self.kind == "windowed"

    @property
    def native_parts(self) -> bool:
        by_text = self.prediction.kind == "incremental" and self.prediction.may_wait
        may_have = self.incremental and (by_text or self._misjudged)
        return may_have and self.emit != "changes" and self.ttl is None and not self._over_changes

    @property
    def _has_windows(self) -> bool:
        """Whether Spark's stream closes windows of this query, as far as its text shows."""
        return self.kind == "windowed" or (self.native_parts and any(map(window_calls, self.prediction.selects)))

    def tables(self) -> tuple[str, ...]:
        return self.query.tables

    def reads(self, input_name: str, isolating: bool) -> int:
        if self.kind == "windowed":
            return max(1, self.prediction.scans(input_name))
        return max(1, sum(reference.name == input_name for reference in self.query.references))

    def origins(self, inputs: Mapping[str, pa.Schema | None]) -> Origins | None:
        return origins_of(self.query, inputs)

    def output(self, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
        if self.incremental:
            return self._changes_of(analyse(self.query, {name: table_of(schema) for name, schema in inputs.items()}).output)
        found = analyse(self.query, inputs).output
        schema = with_carried_columns(self.query, found, inputs) if found is not None else None
        return self._changes_of(schema) if self.kind == "running" else schema

    def _changes_of(self, schema: pa.Schema | None) -> pa.Schema | None:
        if self.final:
            return schema
        return schema.append(pa.field(OP, pa.string())) if schema is not None else None

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        query = self.query
        if query.tree is None:
            return [_syntax_problem(query, bool(inputs))]
        if foreign := foreign_words(query):
            return [each.as_problem() for each in foreign]
        if wrong := list(table_problems(self.sql, self._tables)):
            return wrong
        if self.incremental and names_op(self.sql):
            help_ = (
                "leave `_op` out, since changes of the inputs are applied before the query sees them; or put that part into a query before"
            )
            return [Problem("MS030", "a query that is kept up to date cannot handle `_op` itself", "sql", help_)]
        if self.incremental and uses(self.sql, self._tables):
            help_ = "look rows up in a query of its own, before or after this one"
            return [Problem("MS030", "a dynamic table in a query that is kept up to date is not supported yet", "sql", help_)]
        refusal = self.prediction.refusal if self.kind == "refused" else None
        if refusal:
            return [_at_place(Problem("MS030", refusal.reason, "sql", alternative_to(refusal.reason)), refusal.place)]
        if dead_letter_sink_of(self.late) and self.stateful and not self._has_windows:
            help_ = "group by `window(column, 'size')`, or use a `window` transform"
            return [Problem("MS036", "late rows of this query cannot be isolated", "late", help_)]
        mistakes = [*(() if query.piped else find_uneven(query)), *analyse(query, inputs).mistakes]
        wrong = [each.as_problem() for each in mistakes] or key_problems(self.sql, self._tables, inputs)
        return [*wrong, *(each.as_problem() for each in find_cross_joins(without_joins(self.sql, frozenset(self._tables))))]

    def incremental_problems(
        self, inputs: Mapping[str, pa.Schema | None], declared: Collection[str], *, returned: bool
    ) -> Iterable[Problem]:
        if self.query.piped or any(each.level == "error" for each in self.problems(inputs, Path())):  # names may follow from a mistake
            return []
        columns = {name for schema in inputs.values() if schema is not None for name in schema.names}
        known = all(schema is not None for schema in inputs.values())
        spelled = {name: schema for name, schema in inputs.items() if name in declared}
        names = find_repeated_names(self.query, spelled) if returned else ()
        varying = find_varying(self.query, columns if known else CLOCK_NAMES, returned=returned)
        return [each.as_problem() for each in (*names, *varying)]

    def refuses_isolation(self) -> str:
        tree = without_joins(self.sql, frozenset(self._tables)).tree
        help_ = "put the part that can fail into a separate query: SELECT … FROM one input WHERE …"
        if self.stateful:
            return f"rejects cannot be isolated in an aggregate; {help_}"
        if (
            not isinstance(tree, exp.Select)
            or len(self.query.references) != 1
            or tree.args.get("laterals")
            or tree.find(exp.Subquery, exp.Join)
        ):
            return f"rejects cannot be isolated in this query; {help_}"
        if self.rebuilt_per_epoch:
            return f"rejects cannot be isolated where a dynamic table is looked up; {help_}"
        if tree.find(exp.CTE) or _MULTIPLYING.search(self.sql):
            return f"rejects cannot be isolated where one row becomes several; {help_}"
        return ""

    def open(self, context: NodeContext) -> SqlRun:
        return SqlRun(self, context)


class _Parsed(NamedTuple):
    """A query that is not bound to frames yet."""

    carrying: Carrying
    functions: frozenset[tuple[str, str]]
    """Verb and table of the functions on dynamic tables that it calls."""


class SqlRun(TransformRun):
    """Keeps facts from building the stream until the rest of the query is built."""

    def __init__(self, transform: Sql, context: NodeContext) -> None:
        super().__init__(transform, context)
        self.sql = transform
        self._parsed: dict[bool, _Parsed] = {}
        """Whether the query is over whole tables → its plan, which is the same for every epoch."""
        self._streams: Mapping[str, DataFrame] = {}
        self._cut: parts.Cut | None = None
        """A query with windows in two."""
        self._carriers: list[Carriers] = []
        """For each part of it, the columns with its window; empty after they were checked."""

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        from pyspark.sql import functions as F

        sql = self.sql
        if context.relational or sql.incremental:
            result = self._run(frames, context, rewrites=stream_aggregates(distinct=False))
            return result if context.relational or sql.final else result.withColumn(OP, F.lit("u"))
        if sql.kind == "windowed":
            return self._stream_parts(frames, context)
        changes = {name: kept_columns(frame.columns) for name, frame in frames.items()}
        result = self._run(frames, context, changes, stream_aggregates() if sql.stateful else {})
        if sql.kind == "running":
            _require_key(result, sql.result_key, context)
        if any(changes.values()) and not names_op(sql.sql):
            _require_changes(self._parsed[context.relational].carrying, changes, result.columns, context)
        result = result.withColumn(OP, F.lit("u")) if sql.kind == "running" else result
        return isolate_rejects(result, context.name) if context.isolate else result

    # Windows

    def _stream_parts(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        """The stream of a query with windows: the whole query, or its windowed aggregates in one frame."""
        bridge = Bridge(next(iter(frames.values())).sparkSession)
        self._streams, self._cut = frames, self._cut_windows(bridge, frames, context)
        aggregates = [bridge.frame(parts.streamed(bridge, part)) for part in self._cut.parts]
        kinds = [parts.kind_of_window(part) for part in self._cut.parts]
        if self.sql.has_tail:
            named = [frame.toDF(*[f"c{place}" for place in range(len(frame.columns))]) for frame in aggregates]
            self._carriers = [_windows(frame, kind, context) for frame, kind in zip(named, kinds, strict=True)]
            return _union_parts(named)
        (part,), (kind,) = aggregates, kinds
        result = bridge.frame(self._cut.over(bridge, [bridge.analysed_as_is(part)]))
        _windows(result, kind, context)
        return result

    def _cut_windows(self, bridge: Bridge, frames: Mapping[str, DataFrame], context: NodeContext) -> parts.Cut:
        plan = bridge.analysed(self._run(frames, context, rewrites=stream_aggregates(distinct=False)))
        cut = parts.cut(bridge, plan, sorted(parts.windowed_aggregates(plan), key=parts.place_of))
        if not cut.parts or (not self.sql.has_tail and len(cut.parts) > 1):
            raise _refusal_error(Refusal("Spark's plan of this query has other aggregates by window than its text"), context)
        if parts.reads_inputs(cut.rest):
            raise _refusal_error(Refusal("rows of a stream and windowed aggregates cannot be combined on the rows of one epoch"), context)
        return cut

    def finish(self, frame: DataFrame, context: NodeContext) -> DataFrame:
        if self.sql.incremental:  # a preview: nothing is left to do
            return frame
        assert self._cut is not None
        bridge = Bridge(frame.sparkSession)
        # the table functions of an analysed plan are those of the epoch that it was analysed in
        cut = self._cut_windows(bridge, self._streams, context) if self.sql.rebuilt_per_epoch else self._cut
        aliases = [_alias(context.name, f"part {number}") for number in range(len(cut.parts))]
        rows = [frame.where(f"_part = {number}").select(f"_p{number}.*") for number in range(len(cut.parts))]
        marked = [bridge.named_by([alias], bridge.analysed_as_is(each)) for alias, each in zip(aliases, rows, strict=True)]
        result = freeze(bridge.frame(cut.over(bridge, marked)), context.clock)
        if found := self._carriers:
            _require_windows(result, dict(zip(aliases, found, strict=True)), context)
            self._carriers = []
        return result

    def _run(
        self,
        frames: Mapping[str, DataFrame],
        context: NodeContext,
        changes: Mapping[str, Carried] = MappingProxyType({}),
        rewrites: Rewrites = MappingProxyType({}),
    ) -> DataFrame:
        """The result of the query over frames, which are its tables."""
        bridge = Bridge(next(iter(frames.values())).sparkSession)
        context.record_sql(self.sql.sql)
        if context.relational not in self._parsed:
            rewritten = {**rewrites, **collecting(context.aggregates)}
            self._parsed[context.relational] = self._parse(bridge, changes, rewritten, context.whole_rows)
        parsed = self._parsed[context.relational]
        inputs = {name: names.Input(frame, _alias(context.name, name)) for name, frame in frames.items()}
        with table_functions_registered(bridge.spark, parsed.functions, self.sql.lookups, context):
            return freeze(bridge.frame(names.bind(bridge, parsed.carrying.plan, inputs)), context.clock)

    def _parse(self, bridge: Bridge, changes: Mapping[str, Carried], rewrites: Rewrites, whole_rows: bool) -> _Parsed:
        """The plan of the text, rewritten as far as no frame is needed."""
        plan = rewrite_plan(bridge, names.parse(bridge, self.sql.sql), rewrites)
        found = look_up(bridge, plan, self.sql.lookups, function_name)
        return _Parsed(carry(bridge, found.plan, changes, whole_rows=whole_rows), found.functions)


def _windows(result: DataFrame, kind: str, context: NodeContext) -> Carriers:
    """The columns of a windowed aggregate that contain its window."""
    found = window_columns(result, kind)
    if isinstance(found, Refusal):
        raise _refusal_error(found, context)
    return found


def _require_windows(result: DataFrame, inputs: Mapping[str, Carriers], context: NodeContext) -> None:
    """Require that the per-epoch steps work window by window."""
    if refusal := per_epoch(result, inputs) or inexact(result):
        raise _refusal_error(refusal, context)


def _require_key(result: DataFrame, identity: tuple[str, ...], context: NodeContext) -> None:
    """Running totals must contain their group columns, so that a later row can replace an earlier one."""
    found = totals(result)
    if isinstance(found, Refusal):
        raise _refusal_error(found, context)
    unmatched = [columns for columns in found if identity and not columns.intersection(identity)]
    if not all(found) or unmatched or not frozenset(identity) <= frozenset().union(*found):
        raise _refusal_error(
            Refusal("the result lacks a column that its rows are grouped by, so a later row cannot replace an earlier one"), context
        )


def _refusal_error(refusal: Refusal, context: NodeContext) -> RunError:
    return PlanMismatchError(Diagnostic("MS030", f"`{context.name}`: {refusal.reason}", node=context.name))


def _require_changes(carrying: Carrying, changes: Mapping[str, Carried], columns: list[str], context: NodeContext) -> None:
    if reason := lost(carrying, changes, columns):
        help_ = "write it as plain SELECTs, or use `_op` in it to handle updates and deletes yourself"
        raise PlanMismatchError(Diagnostic("MS030", f"`{context.name}`: {reason}", help=help_, node=context.name))


def _union_parts(frames: list[DataFrame]) -> DataFrame:
    """Several aggregates in one stream, distinguished by number, each in its own struct."""
    from pyspark.sql import functions as F

    tagged = [frame.select(F.lit(number).alias("_part"), F.struct("*").alias(f"_p{number}")) for number, frame in enumerate(frames)]
    return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), tagged)


def _alias(node: str, table: str) -> str:
    """A unique name for each input of each node."""
    return f"_millstream_{hashlib.sha256(f'{node}/{table}'.encode()).hexdigest()[:16]}"


def _syntax_problem(query: Query, wired: bool) -> Problem:
    """A warning if Spark might accept the text and the node declares its inputs; otherwise an error."""
    fault = query.fault or Fault("not understood")
    place = place_between(query.text, fault.start, fault.end) if fault.end else None
    if fault.certain:
        return _at_place(Problem("MS158", f"syntax error in SQL: {fault.reason}", "sql", fault.help), place)
    if wired:
        message = f"the query could not be checked here: {fault.reason}"
        help_ = "Spark checks it when it runs; `millstream check --spark` asks it now"
        return _at_place(Problem("MS028", message, "sql", help_, "warning"), place)
    help_ = fault.help or "if Spark accepts this text, name its inputs with `from: NODE`"
    return _at_place(Problem("MS158", f"syntax error in SQL: {fault.reason}", "sql", help_), place)


def _at_place(problem: Problem, place: TextPlace | None) -> Problem:
    if place is None:
        return problem
    return Problem(
        problem.code, problem.message, problem.field, problem.help, problem.level, place.line, place.column, place.end - place.start
    )
