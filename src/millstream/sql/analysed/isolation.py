"""Isolates rows on which an expression fails, with Spark's `TryEval` around the whole row.

A query over one input is a filter and a projection. Both are put into one struct and evaluated under `TryEval`, which returns null when
anything inside throws: a cast, an overflow, a division by zero. Such a row becomes a reject with the input as JSON and the name of the
failed column. Two things make this safe. The struct itself is never null, so a null can only mean failure. And the condition
`spark_partition_id() >= 0` around it is always true but opaque to the optimizer, which would otherwise compute shared parts of the
expressions before, and outside of, `TryEval`; because it is marked non-deterministic, the expression is not computed twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.errors import Diagnostic, RunError
from millstream.plan.components import REJECT
from millstream.plan.tracing import TRACED
from millstream.sql.own_functions import as_called

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_ATTEMPT = "_millstream_attempt"
_TIME = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"


def without_rejects(frame: DataFrame) -> DataFrame:
    """For transforms in which no row can fail."""
    return frame.selectExpr("*", f"CAST(NULL AS struct<raw: string, error: string>) AS {REJECT}")


def isolate_rejects(result: DataFrame, node: str, parts: DataFrame | None = None) -> DataFrame:
    """The same rows, plus the rows on which the result would have failed. `result` is a select and a filter over an aliased frame.
    `parts`, a select over the same frame, has the columns whose names and expressions tell what failed, in the order in which they are
    computed; by default those of the result.
    """
    return _Isolation(result, node, parts).frame()


class _Isolation:
    def __init__(self, result: DataFrame, node: str, parts: DataFrame | None) -> None:
        self._session = result.sparkSession
        self._jvm: Any = self._session._jvm
        plan: Any = result._jdf.queryExecution().analyzed()
        projection, self._condition = None, None
        if _kind(plan) == "Project":
            projection, plan = plan.projectList(), plan.child()
        if _kind(plan) == "Filter":
            self._condition, plan = plan.condition(), plan.child()
        if _kind(plan) != "SubqueryAlias":
            raise RunError(Diagnostic("MS032", f"rejects of `{node}` cannot be isolated: the query is more than SELECT … FROM … WHERE"))
        self._input = plan
        self._names, self._expressions = _columns(projection if projection is not None else plan.output())
        self._parts = (self._names, self._expressions) if parts is None else _columns(parts._jdf.queryExecution().analyzed().projectList())

    def frame(self) -> DataFrame:
        from pyspark.sql import functions as F

        inputs = [self._column(attribute) for attribute in _items(self._input.output())]
        row = F.struct(*[self._column(expression).alias(f"c{i}") for i, expression in enumerate(self._expressions)])
        attempt = self._attempt(row if self._condition is None else F.when(self._column(self._condition), row))
        tried = self._over_input().select(*inputs, attempt.alias(_ATTEMPT))
        if self._condition is not None:
            tried = tried.where(f"{_ATTEMPT} IS NULL OR {_ATTEMPT}.value IS NOT NULL")
        columns = [F.col(f"{_ATTEMPT}.value.c{i}").alias(name) for i, name in enumerate(self._names)]
        shown = [self._column(attribute) for attribute in _items(self._input.output()) if attribute.name() != TRACED]
        raw = F.to_json(F.struct(*shown), {"ignoreNullFields": "false", "timestampFormat": _TIME})
        reject = F.when(F.col(_ATTEMPT).isNull(), F.struct(raw.alias("raw"), self._error().alias("error")))
        return tried.select(*columns, reject.alias(REJECT))

    def _attempt(self, value: Column) -> Column:
        """`{value: …}`, or null when computing it fails."""
        from pyspark.sql import functions as F

        opaque = F.when(F.spark_partition_id() >= 0, value).alias("value")
        struct = self._utils.expression(F.struct(opaque)._jc)
        return self._column(self._jvm.org.apache.spark.sql.catalyst.expressions.TryEval(struct))

    def _error(self) -> Column:
        """The part that failed: tried again one by one, for rejects only."""
        from pyspark.sql import functions as F

        parts = (
            [] if self._condition is None else [(self._condition, f"the condition {as_called(self._condition.sql())} failed on this row")]
        )
        computed = [pair for pair in zip(*self._parts, strict=True) if _kind(pair[1]) != "AttributeReference"]
        parts += [(expression, f"`{name}`: {as_called(expression.sql())} failed on this row") for name, expression in computed]
        error = F.lit("an expression failed on this row")
        for expression, sentence in reversed(parts):
            error = F.when(self._attempt(self._column(expression)).isNull(), F.lit(sentence)).otherwise(error)
        return error

    def _over_input(self) -> DataFrame:
        from pyspark.sql.classic.dataframe import DataFrame

        rows = self._jvm.org.apache.spark.sql.classic.Dataset.ofRows(self._session._jsparkSession, self._input)
        return DataFrame(rows, self._session)

    def _column(self, expression: Any) -> Column:
        from pyspark.sql.classic.column import Column

        return Column(self._utils.column(expression))

    @property
    def _utils(self) -> Any:
        return self._jvm.org.apache.spark.sql.classic.ExpressionUtils


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _columns(projection: Any) -> tuple[list[str], list[Any]]:
    """The names and the expressions of a projection."""
    items = _items(projection)
    return [str(item.name()) for item in items], [item.child() if _kind(item) == "Alias" else item for item in items]


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(index) for index in range(sequence.size())]
