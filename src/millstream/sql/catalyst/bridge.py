"""The private interface of Spark's SQL: parsing, building, replacing and running plans.

Spark has no public interface to the plans that it parses and analyses. They are reached through py4j, so this module depends on the
version of Spark: `tests/sql/test_bridge.py` calls every method once, and `Bridge.check` builds the essential nodes when an incremental
query starts. `engine/incremental/` and `sql/analysed/` still read fields of plans themselves. One call takes about 0.05 ms.
A Scala map is also a partial function, so a substitution in a tree is one call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

Plan = Any
"""A logical or physical plan on the JVM."""
Expression = Any
"""An expression on the JVM; also an attribute, which is a column of a plan."""
Rdd = Any
"""An RDD of Spark's internal rows on the JVM."""


_ALL = (1 << 31) - 1
SESSION = "spark.sessionWindow"
"""Marks a column of sessions, in its metadata."""
WATERMARK = "spark.watermarkDelayMs"
"""Marks a column of event times whose watermark Spark knows."""


class _Handles:
    """Packages, classes and functions that are needed often."""

    def __init__(self, view: Any) -> None:
        from millstream.jvm.names import with_known_names

        self.jvm = jvm = with_known_names(view)
        sql, utils = jvm.org.apache.spark.sql, jvm.org.apache.spark.api.python.PythonUtils
        self.catalyst = sql.catalyst
        self.expressions = self.catalyst.expressions
        self.logical = self.catalyst.plans.logical
        self.subquery_alias = self.logical.SubqueryAlias
        self.alias_identifier = self.catalyst.AliasIdentifier
        self.patterns = self.catalyst.trees.TreePattern
        self.of_rows = sql.classic.Dataset.ofRows
        self.new_list, self.new_map = jvm.java.util.ArrayList, jvm.java.util.HashMap
        self.to_seq, self.to_map = utils.toSeq, utils.toScalaMap


_handles = lru_cache(maxsize=1)(_Handles)


class Bridge:
    """The calls, for one session."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._session: Any = spark._jsparkSession
        self._handles: _Handles = _handles(spark._jvm)
        self._jvm = cast("Any", self._handles.jvm)
        self._catalyst, self._expressions, self._logical = self._handles.catalyst, self._handles.expressions, self._handles.logical

    # Scala values

    def seq(self, items: Iterable[Any]) -> Any:
        """A Scala sequence."""
        found = self._handles.new_list()
        for item in items:
            found.add(item)
        return self._handles.to_seq(found)

    @cached_property
    def _nothing(self) -> Any:
        """An empty sequence."""
        return self.seq([])

    @cached_property
    def _none(self) -> Any:
        return self._jvm.scala.Option.empty()

    def option(self, value: Any) -> Any:
        return self._jvm.scala.Option.apply(value)

    @staticmethod
    def items(sequence: Any) -> list[Any]:
        """The items of a Scala sequence."""
        return [sequence.apply(index) for index in range(sequence.size())]

    def _function(self, pairs: Iterable[tuple[Any, Any]]) -> Any:
        """A partial function, as a Scala map."""
        table = self._handles.new_map()
        for old, new in pairs:
            table.put(old, new)
        return self._handles.to_map(table)

    # Frames and plans

    @cached_property
    def _parser(self) -> Any:
        return self._session.sessionState().sqlParser()

    def parse(self, text: str) -> Plan:
        """The plan of a query as Spark's parser reads it: names are not resolved."""
        return self._parser.parsePlan(text)

    def with_inlined_definitions(self, plan: Plan) -> Plan:
        """A parsed plan whose WITH clauses are part of the tree."""
        return self._catalyst.analysis.CTESubstitution.apply(plan)

    def with_tables(self, plan: Plan, tables: Mapping[str, Plan]) -> Plan:
        """A parsed plan in which the names of tables are replaced by plans, also in subqueries. A name can have dots."""
        found = {}
        for tree in [plan, *self.subquery_plans(plan)]:
            for leaf in self.items(tree.collectLeaves()):
                if self.kind(leaf) == "UnresolvedRelation":
                    name = ".".join(map(str, self.items(leaf.multipartIdentifier())))
                    if name in tables:
                        found[leaf] = self.named(name, tables[name])
        return self.replaced_everywhere(plan, found.items())

    def analysed(self, frame: DataFrame) -> Plan:
        """The plan after Spark's analyser, with common table expressions inlined."""
        return self._catalyst.optimizer.InlineCTE(True, False).apply(frame._jdf.queryExecution().analyzed())

    @staticmethod
    def analysed_as_is(frame: DataFrame) -> Plan:
        """The plan after Spark's analyser."""
        return frame._jdf.queryExecution().analyzed()

    def relations(self, plan: Plan) -> list[tuple[Plan, list[str]]]:
        """The tables of a parsed plan and of its subqueries, each with the parts of its name."""
        leaves = [leaf for each in [plan, *self.subquery_plans(plan)] for leaf in self.items(each.collectLeaves())]
        found = [leaf for leaf in leaves if self.kind(leaf) == "UnresolvedRelation"]
        return [(leaf, self.name_parts(leaf)) for leaf in found]

    def optimised(self, plan: Plan) -> Plan:
        return self._rows(plan).queryExecution().optimizedPlan()

    def physical(self, frame: DataFrame) -> Plan:
        return frame._jdf.queryExecution().executedPlan()

    def frame(self, plan: Plan) -> DataFrame:
        """The frame of a logical plan."""
        from pyspark.sql.classic.dataframe import DataFrame

        return DataFrame(self._rows(plan), self.spark)

    def _rows(self, plan: Plan) -> Any:
        return self._handles.of_rows(self._session, plan)

    def rdd(self, frame: DataFrame) -> Rdd:
        return frame._jdf.queryExecution().toRdd()

    def streaming_refusal(self, plan: Plan, mode: str) -> str:
        """Why Spark would not run a plan as a stream with an output mode (`Append`, `Update`); empty when it would."""
        from pyspark.errors import AnalysisException

        modes = self._jvm.org.apache.spark.sql.streaming.OutputMode
        try:
            self._catalyst.analysis.UnsupportedOperationChecker.checkForStreaming(plan, getattr(modes, mode)())
        except AnalysisException as error:
            return str(error).partition("\n")[0]
        return ""

    # Trees

    @staticmethod
    def kind(node: Plan | Expression) -> str:
        return str(node.getClass().getSimpleName())

    def full_text(self, plan: Plan) -> str:
        """A plan as text, with all columns and arguments: Spark's own text ends after 25, as the active session says."""
        sessions = self._jvm.org.apache.spark.sql.SparkSession
        before = sessions.getActiveSession()
        self.spark.conf.set("spark.sql.debug.maxToStringFields", str(_ALL))
        sessions.setActiveSession(self._session)
        try:
            return str(plan.treeString(True, False, _ALL, False, False))
        finally:
            self.spark.conf.unset("spark.sql.debug.maxToStringFields")
            sessions.setActiveSession(before.get()) if before.isDefined() else sessions.clearActiveSession()

    def children(self, node: Plan | Expression) -> list[Any]:
        return self.items(node.children())

    def with_children(self, node: Any, children: Iterable[Any]) -> Any:
        return node.withNewChildren(self.seq(children))

    def replaced(self, tree: Any, pairs: Iterable[tuple[Any, Any]]) -> Any:
        """A tree with nodes replaced by equal type: plans in a plan, expressions in an expression."""
        found = list(pairs)
        return tree.transformUp(self._function(found)) if found else tree

    def replaced_everywhere(self, plan: Plan, pairs: Iterable[tuple[Plan, Plan]]) -> Plan:
        """A plan with nodes replaced, also in its subqueries."""
        found = list(pairs)
        return plan.transformUpWithSubqueries(self._function(found)) if found else plan

    def replaced_from_top(self, expression: Expression, pairs: Iterable[tuple[Expression, Expression]]) -> Expression:
        """An expression with parts replaced, and then parts of what has replaced them."""
        return expression.transformDown(self._function(pairs))

    def replaced_from_top_everywhere(self, plan: Plan, pairs: Iterable[tuple[Plan, Plan]]) -> Plan:
        """A plan with nodes replaced, and then nodes in what has replaced them, also in its subqueries."""
        found = list(pairs)
        return plan.transformDownWithSubqueries(self._function(found)) if found else plan

    def nodes(self, plan: Plan) -> Iterator[Plan]:
        """All nodes of a plan and of its subqueries."""
        waiting = [plan, *self.subquery_plans(plan)]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += self.children(node)

    def expressions(self, plan: Plan) -> Iterator[Expression]:
        """The expressions of all nodes of a plan and of its subqueries."""
        for node in self.nodes(plan):
            yield from self.items(node.expressions())

    def with_expressions_everywhere(self, plan: Plan, pairs: Iterable[tuple[Expression, Expression]]) -> Plan:
        """A plan with expressions replaced, also in its subqueries: from the top, as in `replaced_from_top`."""
        return plan.transformAllExpressionsWithSubqueries(self._function(pairs))

    def subquery_plans(self, plan: Plan) -> list[Plan]:
        """The plans of all subqueries in a plan's expressions, at any depth."""
        return self.items(plan.subqueriesAll())

    def origin(self, node: Plan | Expression) -> tuple[int, int] | None:
        """Line and column, from 1, in the text that was parsed."""
        found = node.origin()
        if not (found.line().isDefined() and found.startPosition().isDefined()):
            return None
        return int(found.line().get()), int(found.startPosition().get()) + 1

    @staticmethod
    def text_of(node: Expression) -> str:
        """The part of the parsed text that an expression was."""
        found = node.origin()
        text, start, stop = found.sqlText(), found.startIndex(), found.stopIndex()
        return str(text.get())[int(start.get()) : int(stop.get()) + 1] if text.isDefined() and start.isDefined() else ""

    # What a parsed plan selects

    @staticmethod
    def alias_name(node: Plan) -> str:
        return str(node.identifier().name())

    def name_parts(self, relation: Plan) -> list[str]:
        return [str(part) for part in self.items(relation.multipartIdentifier())]

    def definitions(self, plan: Plan) -> dict[int, Plan]:
        """The definitions of WITH clauses, by the number that `definition_id` gives for a reference."""
        return {int(node.id()): node for node in self.nodes(plan) if self.kind(node) == "CTERelationDef"}

    @staticmethod
    def definition_id(reference: Plan) -> int:
        return int(reference.cteId())

    def item_name(self, item: Expression) -> str:
        """The name that an item of a SELECT has without being analysed; empty for others."""
        if self.kind(item) == "Alias":
            return str(item.name())
        parts = self.attribute_parts(item)
        return parts[-1] if parts else ""

    def names_column(self, expression: Expression, names: Collection[str]) -> bool:
        """Whether an expression reads a column of one of these names, or gives the name to one."""
        return self.item_name(expression) in names or any(self.names_column(child, names) for child in self.children(expression))

    def combines_rows(self, expression: Expression) -> bool:
        """Whether an expression has an aggregate or window function."""
        kind = self.kind(expression)
        if kind in {"AggregateExpression", "WindowExpression", "UnresolvedWindowExpression"}:
            return True
        name = self.function_name(expression) if kind == "UnresolvedFunction" else ""
        return (bool(name) and self._is_aggregate(name)) or any(self.combines_rows(child) for child in self.children(expression))

    def _is_aggregate(self, name: str) -> bool:
        found = self._session.sessionState().functionRegistry().lookupFunction(self._catalyst.FunctionIdentifier(name))
        return bool(found.isDefined()) and str(found.get().getGroup()) == "agg_funcs"

    def star(self) -> Expression:
        return self._catalyst.analysis.UnresolvedStar(self.option(None))

    def is_star_of(self, item: Expression, qualifier: Sequence[str]) -> bool:
        """Whether an item is `*`, or `t.*` of the table with this qualifier."""
        if not self.kind(item).startswith("UnresolvedStar"):
            return False
        target = self.items(item.target().get()) if item.target().isDefined() else []
        return not target or (bool(qualifier) and str(target[-1]).lower() == qualifier[-1].lower())

    def star_except(self, star: Expression, names: Iterable[str]) -> Expression:
        """A star without these columns, beside those that it leaves out already."""
        excluding = self.kind(star) == "UnresolvedStarExceptOrReplace"
        known = [[str(part) for part in self.items(parts)] for parts in self.items(star.excepts())] if excluding else []
        more = [[name] for name in names if [name] not in known]
        replacements = star.replacements() if excluding else self.option(None)
        columns = self.seq([self.seq(parts) for parts in (*known, *more)])
        return self._catalyst.analysis.UnresolvedStarExceptOrReplace(star.target(), columns, replacements)

    # Joins in a parsed plan

    def joins(self, plan: Plan) -> list[Plan]:
        return [node for node in self.nodes(plan) if self.kind(node) == "Join"]

    @staticmethod
    def join_form(join: Plan) -> str:
        """`INNER`, `LEFT OUTER`, …; empty for USING and NATURAL."""
        return str(join.joinType().sql()) if Bridge.kind(join.joinType()) not in {"UsingJoin", "NaturalJoin"} else ""

    def table_name(self, node: Plan) -> tuple[str, str]:
        """The table that a node of a parsed plan is, and the name that its columns are qualified by; empty for other nodes."""
        named = self.kind(node) == "SubqueryAlias"
        relation = self.children(node)[0] if named else node
        if self.kind(relation) != "UnresolvedRelation":
            return "", ""
        parts = self.name_parts(relation)
        return ".".join(parts), str(node.identifier().name()) if named else parts[-1]

    def equality(self, join: Plan) -> tuple[Expression, Expression] | None:
        """Both sides of a join's condition, if that is one equality."""
        condition = join.condition()
        if not condition.isDefined() or self.kind(condition.get()) != "EqualTo":
            return None
        left, right = self.children(condition.get())
        return left, right

    def attribute_parts(self, expression: Expression) -> list[str]:
        """The name of a column in a parsed plan; empty for other expressions."""
        return [str(part) for part in self.items(expression.nameParts())] if self.kind(expression) == "UnresolvedAttribute" else []

    # Calls of functions in a parsed plan

    def has_calls(self, tree: Plan | Expression) -> bool:
        patterns = self._handles.patterns
        return bool(tree.containsPattern(patterns.UNRESOLVED_FUNCTION())) or bool(tree.containsPattern(patterns.AGGREGATE_EXPRESSION()))

    def as_call(self, node: Expression) -> Expression | None:
        """An expression as a call of a function, if it is one. The parser resolves `first` and `last` itself."""
        if self.kind(node) == "UnresolvedFunction":
            return node
        function = node.aggregateFunction() if self.kind(node) == "AggregateExpression" else None
        if function is None or self.kind(function) not in {"First", "Last"}:
            return None
        clauses = (node.isDistinct(), node.filter(), function.ignoreNulls(), self.seq([]), False)
        with self._at(node):
            return self._catalyst.analysis.UnresolvedFunction(self.seq([self.kind(function)]), self.seq([function.child()]), *clauses)

    def aggregate_functions(self, expression: Expression) -> list[Expression]:
        """The calls of aggregates in an analysed expression."""
        if self.kind(expression) == "AggregateExpression":
            return [expression]
        return [each for child in self.children(expression) for each in self.aggregate_functions(child)]

    def as_unresolved(self, function: Expression) -> Expression | None:
        """An analysed `count` as a call that is analysed again; None for other aggregates."""
        inner = function.aggregateFunction()
        if self.kind(inner) != "Count":
            return None
        clauses = (function.isDistinct(), function.filter(), False, self.seq([]), False)
        with self._at(function):
            return self._catalyst.analysis.UnresolvedFunction(self.seq(["count"]), inner.children(), *clauses)

    def field(self, struct: Expression, ordinal: int) -> Expression:
        """A field of a struct, by its place."""
        return self._expressions.GetStructField(struct, ordinal, self._jvm.scala.Option.empty())

    def function_name(self, call: Expression) -> str:
        """The name of the function that is called; empty for names with dots."""
        parts = self.items(call.nameParts())
        return str(parts[0]) if len(parts) == 1 else ""

    def arguments(self, call: Expression) -> list[Expression]:
        return self.items(call.arguments())

    def text_value(self, expression: Expression) -> str | None:
        """The value of a text literal."""
        text = self.kind(expression) == "Literal" and str(expression.dataType().catalogString()) == "string"
        return str(expression.value().toString()) if text else None

    @staticmethod
    def ignores_nulls(call: Expression) -> bool:
        return bool(call.ignoreNulls())

    @staticmethod
    def is_distinct(call: Expression) -> bool:
        return bool(call.isDistinct())

    def call(
        self, name: str, arguments: Iterable[Expression], at: Expression, *, filtered: bool = False, distinct: bool = False
    ) -> Expression:
        """A call of a function, at the place of another call; `filtered`: with its FILTER and the like."""
        clauses = (at.filter(), at.ignoreNulls(), at.orderingWithinGroup()) if filtered else (self.option(None), False, self.seq([]))
        with self._at(at):
            return self._catalyst.analysis.UnresolvedFunction(self.seq([name]), self.seq(arguments), distinct, *clauses, False)

    @contextmanager
    def _at(self, node: Plan | Expression) -> Iterator[None]:
        """What is made in the body has the place of a node in the text."""
        origin = self._catalyst.trees.CurrentOrigin
        origin.set(node.origin())
        try:
            yield
        finally:
            origin.reset()

    # Expressions

    def column(self, expression: Expression) -> Column:
        """An expression for public calls that take a column."""
        from pyspark.sql.classic.column import Column

        return Column(self._jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression))

    def alias(self, expression: Expression, name: str, expr_id: Any = None, *, is_session: bool = True) -> Expression:
        """A named expression; `expr_id` gives it the identity of another column. Without `is_session` it holds no sessions for Spark, which
        would merge them wherever rows are grouped by it.
        """
        chosen = expr_id if expr_id is not None else self._expressions.NamedExpression.newExprId()
        dropped = self._nothing if is_session else self.seq([SESSION])
        return self._expressions.Alias(expression, name, chosen, self._nothing, self._none, dropped)

    def expression(self, text: str) -> Expression:
        """An expression as Spark's parser reads it. Literals go this way: py4j turns a small long into an int."""
        return self._parser.parseExpression(text)

    def null_of(self, data_type: Any) -> Expression:
        return self._expressions.Literal.create(None, data_type)

    @property
    def time_zone(self) -> str:
        """The time zone of the session."""
        return str(self._session.sessionState().conf().sessionLocalTimeZone())

    def unnamed(self, item: Expression) -> Expression:
        """An expression without its alias."""
        return item.child() if self.kind(item) == "Alias" else item

    def conjuncts(self, condition: Expression) -> list[Expression]:
        """The conditions that AND combines."""
        if self.kind(condition) != "And":
            return [condition]
        return [each for side in self.children(condition) for each in self.conjuncts(side)]

    def make(self, name: str, *arguments: Any) -> Expression:
        """An expression of Spark's class `name`."""
        return getattr(self._expressions, name)(*arguments)

    def struct(self, columns: Iterable[Expression]) -> Expression:
        """A struct of columns, with their names."""
        return self._expressions.CreateStruct.apply(self.seq(columns))

    def hash_of(self, keys: list[Expression]) -> Expression:
        """64 bits that are equal for equal keys, nulls included."""
        return self._expressions.XxHash64(self.seq(keys)) if keys else self.expression("0L")

    def widens(self, cast: Expression) -> bool:
        """Whether a cast has an exact result for every value."""
        return bool(self._expressions.Cast.canUpCast(cast.child().dataType(), cast.dataType()))

    def count(self, expression: Expression) -> Expression:
        return self._expressions.aggregate.Count(self.seq([expression])).toAggregateExpression()

    def first(self, expression: Expression) -> Expression:
        function: Any = self._expressions.aggregate.First
        return function(expression, False).toAggregateExpression()

    def plain_aggregate(self, function: Expression, pairs: Iterable[tuple[Expression, Expression]]) -> Expression:
        """An aggregate of DISTINCT values as one of all values, with expressions replaced in its arguments."""
        inner = self.substituted(function.aggregateFunction(), pairs)
        return function.copy(inner, function.mode(), False, function.filter(), function.resultId())

    def substituted(self, expression: Expression, pairs: Iterable[tuple[Expression, Expression]]) -> Expression:
        """An expression whose parts are replaced from the top: what replaces a part is not looked into."""
        found = list(pairs)
        for old, new in found:
            if expression.fastEquals(old):
                return new
        before = self.children(expression)
        after = [self.substituted(child, found) for child in before]
        changed = any(one is not other for one, other in zip(before, after, strict=True))
        return self.with_children(expression, after) if changed else expression

    def with_expressions(self, plan: Plan, pairs: Iterable[tuple[Expression, Expression]]) -> Plan:
        """A plan with expressions replaced in its own node."""
        return plan.transformExpressionsUp(self._function(list(pairs)))

    def resolved(self, text: str, data_type: Any) -> Expression:
        """An expression without columns, as a value of a type."""
        frame = self.spark.range(0).selectExpr(f"cast({text} AS {data_type.sql()}) AS value")
        return frame._jdf.queryExecution().analyzed().projectList().apply(0).child()

    # Logical plans

    def project(self, items: Iterable[Expression], child: Plan) -> Plan:
        return self._logical.Project(self.seq(items), child)

    def filter(self, condition: Expression, child: Plan) -> Plan:
        return self._logical.Filter(condition, child)

    def aggregate(self, keys: Iterable[Expression], items: Iterable[Expression], child: Plan) -> Plan:
        return self._logical.Aggregate(self.seq(keys), self.seq(items), child, self._jvm.scala.Option.empty())

    def join(self, left: Plan, right: Plan, how: Any, condition: Expression | None) -> Plan:
        """A join; `how` is Spark's join type or its name."""
        form = self._catalyst.plans.JoinType.apply(how) if isinstance(how, str) else how
        return self._logical.Join(left, right, form, self.option(condition), self._logical.JoinHint.NONE())

    def window(self, node: Plan, partition: Iterable[Expression], child: Plan) -> Plan:
        """The window functions of a plan, over other partitions and another child."""
        return self._logical.Window(node.windowExpressions(), self.seq(partition), node.orderSpec(), child, node.hint())

    def first_rows(self, order: Iterable[Expression], most: int, child: Plan) -> Plan:
        """The first rows of a plan in an order."""
        count, logical = self.expression(str(most)), self._logical
        ordered = logical.Sort(self.seq(order), True, child, self._jvm.scala.Option.empty())
        return logical.GlobalLimit(count, logical.LocalLimit(count, ordered))

    def ascending(self, expression: Expression) -> Expression:
        """An expression as a part of an order."""
        (by_one,) = self.items(self.parse("SELECT 1 ORDER BY 1").order())
        return self.with_children(by_one, [expression])

    def expand(self, projections: Iterable[Iterable[Expression]], output: Iterable[Expression], child: Plan) -> Plan:
        return self._logical.Expand(self.seq([self.seq(each) for each in projections]), self.seq(output), child)

    def named(self, name: str, plan: Plan) -> Plan:
        """A plan whose columns can be called `name.column`; the name can have dots."""
        return self.named_by(name.split("."), plan)

    def named_by(self, parts: Sequence[str], plan: Plan) -> Plan:
        """A plan whose columns can be called by a name of several parts, or by its last ones."""
        *qualifier, last = parts
        return self._handles.subquery_alias(self._handles.alias_identifier(last, self.seq(qualifier)), plan)

    @cached_property
    def one_row(self) -> Plan:
        return self._logical.OneRowRelation()

    # What Spark's planner knows about a plan

    def aggregate_parts(self, aggregate: Plan) -> tuple[list[Expression], list[Expression], list[Expression]] | None:
        """The keys, the aggregate functions and the results of an aggregate, as Spark's planner separates them."""
        found = self._catalyst.planning.PhysicalAggregation.unapply(aggregate)
        if not found.isDefined():
            return None
        parts = found.get()
        return self.items(parts._1()), self.items(parts._2()), self.items(parts._3())

    def join_keys(self, join: Plan) -> tuple[list[Expression], list[Expression]]:
        """The expressions of both sides that an equality in the condition compares."""
        found = self._catalyst.planning.ExtractEquiJoinKeys.unapply(join)
        return (self.items(found.get()._2()), self.items(found.get()._3())) if found.isDefined() else ([], [])

    def bounds_state(self, join: Plan) -> bool:
        """Whether the watermark bounds what a join of streams keeps of both sides: it compares their event times."""
        helper: Any = self._catalyst.analysis.StreamingJoinHelper
        pairs = zip(*self.join_keys(join), strict=True)
        if any(self._is_timed(left) and self._is_timed(right) for left, right in pairs):
            return True
        moment = self.option(_ALL << 10)  # any; py4j turns a small long into an int
        sides = [(join.left(), join.right()), (join.right(), join.left())]
        found = [helper.getStateValueWatermark(own.outputSet(), self._timed(other), join.condition(), moment) for own, other in sides]
        return all(each.isDefined() for each in found)

    def _is_timed(self, expression: Expression) -> bool:
        """Whether it is a column with a watermark."""
        return self.kind(expression) == "AttributeReference" and bool(expression.metadata().contains(WATERMARK))

    def _timed(self, plan: Plan) -> Any:
        """The columns with a watermark."""
        columns = [each for each in self.items(plan.output()) if self._is_timed(each)]
        sets: Any = self._expressions.AttributeSet
        return sets.fromAttributeSets(self.seq([each.references() for each in columns]))

    def distinct_keys(self, plan: Plan) -> list[set[int]]:
        """Sets of column ids, each of which identifies a row of an optimised plan."""
        found = self._jvm.scala.jdk.javaapi.CollectionConverters.asJava(plan.distinctKeys())
        return [{int(each.exprId().id()) for each in self._jvm.scala.jdk.javaapi.CollectionConverters.asJava(key.toSeq())} for key in found]

    def is_session(self, key: Expression) -> bool:
        """Whether a column holds sessions, which Spark merges where rows are grouped by them."""
        return self.kind(key) in {"AttributeReference", "Alias"} and bool(key.metadata().contains(SESSION))

    def uses_clock(self, tree: Plan | Expression) -> bool:
        """Whether `current_timestamp()` or the like is in a tree."""
        return bool(tree.containsPattern(self._handles.patterns.CURRENT_LIKE()))

    # Leaves over RDDs

    def empty_rdd(self) -> Rdd:
        return self.spark.sparkContext._jsc.emptyRDD().rdd()

    def leaf(self, output: Any, rdd: Rdd, key: Expression | None = None, partitions: int = 0) -> Plan:
        """A logical plan over rows; with `key`, they are partitioned by its hash."""
        ways = self._catalyst.plans.physical
        how = ways.UnknownPartitioning(0) if key is None else ways.HashPartitioning(self.seq([key]), partitions)
        none = self._none
        return self._jvm.org.apache.spark.sql.execution.LogicalRDD(output, rdd, how, self._nothing, False, none, self._session, none, none)

    def is_leaf(self, plan: Plan) -> bool:
        return self.kind(plan) == "LogicalRDD"

    @staticmethod
    def rdd_id(leaf: Plan) -> int:
        """What identifies the rows of a leaf: a table that is joined with itself has two leaves with one id."""
        return int(leaf.rdd().id())

    @staticmethod
    def partitions(leaf: Plan) -> int:
        """The partitions of a leaf's rows."""
        return int(leaf.rdd().getNumPartitions())

    def scans(self, physical: Plan) -> list[Plan]:
        """The leaves of a physical plan that read an RDD."""
        return [leaf for leaf in self.items(physical.collectLeaves()) if self.kind(leaf) == "RDDScanExec"]

    def bound(self, physical: Plan, rdds: Iterable[tuple[Plan, Rdd]]) -> Plan:
        """A physical plan whose scans read other RDDs."""
        scan = self._jvm.org.apache.spark.sql.execution.RDDScanExec
        pairs = [
            (old, scan(old.output(), rdd, old.name(), old.outputPartitioning(), old.outputOrdering(), old.stream())) for old, rdd in rdds
        ]
        return self.replaced(physical, pairs)

    def is_partitioned_by(self, physical: Plan, column: str, partitions: int) -> bool:
        """Whether the rows of a plan are where the hash of a column puts them."""
        how = physical.outputPartitioning()
        if self.kind(how) != "HashPartitioning" or how.numPartitions() != partitions or how.expressions().size() != 1:
            return False
        own = [each for each in self.items(physical.output()) if each.name() == column]
        return bool(own) and bool(how.expressions().apply(0).semanticEquals(own[0]))

    def with_narrow_exchange(self, physical: Plan, column: str, partitions: int) -> Plan:
        """A plan whose rows are exchanged by the hash of one column, where Spark exchanges them by that column and others: rows that are
        equal in all of them stay together.
        """
        node = physical
        while self.kind(node) != "ShuffleExchangeExec":
            below = self.children(node)
            if len(below) != 1:
                return physical
            node = below[0]
        how = node.outputPartitioning()
        found = [each for each in self.items(how.expressions()) if _is_column(each, column)] if self.kind(how) == "HashPartitioning" else []
        if not found:
            return physical
        narrow = self._catalyst.plans.physical.HashPartitioning(self.seq(found[:1]), partitions)
        exchange = self._jvm.org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
        return self.replaced(physical, [(node, exchange(narrow, node.child(), node.shuffleOrigin(), node.advisoryPartitionSize()))])

    def with_lazy_joins(self, physical: Plan, ids: Collection[int]) -> Plan:
        """A plan whose joins run without generated code where the hashed side scans one of these RDDs. Such a join does not read its other
        side if there is nothing to meet; generated code reads it all.
        """
        waiting, pairs = [physical], []
        while waiting:
            node = waiting.pop()
            if self.kind(node) == "WholeStageCodegenExec" and self._hashes_one_of(node, ids):
                pairs.append((node, node.child()))
            waiting += self.children(node)
        return physical.transformDown(self._function(pairs)) if pairs else physical

    def _hashes_one_of(self, stage: Plan, ids: Collection[int]) -> bool:
        waiting = [stage]
        while waiting:
            node = waiting.pop()
            if self.kind(node) == "ShuffledHashJoinExec":
                built = node.left() if "Left" in str(node.buildSide()) else node.right()
                if any(self.rdd_id(scan) in ids for scan in self.scans(built)):
                    return True
            waiting += [each for each in self.children(node) if self.kind(each) != "InputAdapter"]
        return False

    def with_nullability(self, output: Any, required: frozenset[str]) -> Any:
        """The attributes as nullable, except the required ones."""
        return self.seq([each.withNullability(each.name() not in required) for each in self.items(output)])

    def nullable(self, attribute: Expression) -> Expression:
        """A new attribute like another one that may be null, with everything in it: a row of another part of a frame has no value there."""
        return attribute.newInstance().withDataType(attribute.dataType().asNullable()).withNullability(True)

    def union_rdd(self, rdds: list[Rdd], partitions: int) -> Rdd:
        """The rows of RDDs that are partitioned alike, partition by partition."""
        if len(rdds) == 1:
            return rdds[0]
        context = self.spark.sparkContext._jsc.sc()
        union: Any = self._jvm.org.apache.spark.rdd.SQLPartitioningAwareUnionRDD
        return union(context, self.seq(rdds), partitions, rdds[0].elementClassTag())

    @cached_property
    def _holds_serialised(self) -> bool:
        """Rows can be held as they come if Kryo writes them. Java's serialisation would write references to the reused row object."""
        return self.spark.conf.get("spark.serializer", "").endswith("KryoSerializer")  # type: ignore[union-attr]  # the default is a string

    def hold(self, output: Any, rdd: Rdd) -> Rdd:
        """The rows, kept in memory or on disk and cut from their lineage once a job has computed them."""
        if self._holds_serialised:
            context = self.spark.sparkContext._jsc.sc()
            # a union forgets its inputs once it is cut; other RDDs keep their function, and with it the plan and all rows below
            union = self._jvm.org.apache.spark.rdd.UnionRDD(context, self.seq([rdd]), rdd.elementClassTag())
            return union.persist(self._jvm.org.apache.spark.storage.StorageLevel.MEMORY_AND_DISK_SER()).localCheckpoint()
        return self.hold_copies(output, rdd)

    def hold_copies(self, output: Any, rdd: Rdd) -> Rdd:
        """The rows, held as objects: slower to make, faster to read."""
        return self.frame(self.leaf(output, rdd))._jdf.localCheckpoint(False).queryExecution().analyzed().rdd()

    def held_sizes(self, ids: Collection[int]) -> dict[int, int]:
        """The id of an RDD → the bytes of its rows in memory and on disk, for those whose rows are computed."""
        infos = [(int(info.id()), info) for info in self.spark.sparkContext._jsc.sc().getRDDStorageInfo()]
        return {number: int(info.memSize()) + int(info.diskSize()) for number, info in infos if number in ids}

    def complete_observations(self, frame: DataFrame) -> None:
        """Report what was observed in the plan of a frame. Spark does that itself for queries, and not for jobs below them."""
        manager = "org$apache$spark$sql$classic$ObservationManager"
        getattr(self._session.observationManager(), f"{manager}$$tryComplete")(frame._jdf.queryExecution())

    def checkpoint_all_ancestors(self) -> None:
        """Jobs of this thread cut the lineage of every held RDD that they compute, and not only of the last one."""
        self.spark.sparkContext.setLocalProperty("spark.checkpoint.checkpointAllMarkedAncestors", "true")

    def check(self) -> None:
        """Build the essential nodes once: fails if this version of Spark has another interface."""
        one = self.project([self.alias(self.expression("1L"), "c0"), self.alias(self.expression("2L"), "_h")], self.one_row)
        frame = self.frame(one)
        scan = self.leaf(frame._jdf.queryExecution().analyzed().output(), self.rdd(frame))
        scans = self.scans(self.physical(self.frame(scan)))
        assert len(scans) == 1, "a leaf over an RDD is not one scan"


def _is_column(expression: Expression, name: str) -> bool:
    return Bridge.kind(expression) == "AttributeReference" and str(expression.name()) == name
