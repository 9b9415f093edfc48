"""A query in Spark SQL. Its text reaches Spark as it was written; only the names of nodes become names of views."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import pyarrow as pa
from pydantic import Field
from sqlglot import exp

from millstream.errors import nearest
from millstream.plan.calls import collected
from millstream.plan.columns import analyse
from millstream.plan.components import NodeContext, Problem, Transform
from millstream.plan.query import Place, Query, freeze_clock, parse_query
from millstream.transforms.isolation import isolated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MULTIPLYING = re.compile(r"\b(explode|posexplode|inline|stack|json_tuple|variant_explode)(_outer)?\s*\(", re.IGNORECASE)


class Sql(Transform):
    """Runs one `SELECT` of Spark SQL. The query names its inputs itself, dots included. Common table expressions, `UNION ALL` of
    several inputs, `LATERAL VIEW explode`, every function of Spark and your own under `functions` can be used; `now()` means the time
    of the epoch.
    """

    type: ClassVar[str] = "sql"
    summary: ClassVar[str] = "Filter, compute and combine with Spark SQL."
    example: ClassVar[str] = """
        large:
          type: sql
          sql: SELECT id, user, amount FROM raw.orders WHERE amount > 1000
    """
    arity: ClassVar[tuple[int, int | None]] = (1, None)

    sql: Annotated[str, Field(min_length=1)]
    """The query."""

    @property
    def query(self) -> Query:
        return parse_query(self.sql)

    @property
    def deterministic(self) -> bool:
        return self.query.deterministic

    def tables(self) -> tuple[str, ...]:
        return self.query.tables

    def output(self, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
        return analyse(self.query, inputs).output

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        query = self.query
        if query.tree is None:
            message = f"the query could not be checked here: {query.problem.rstrip('.').lower()}"
            return [Problem("MS028", message, "sql", "Spark has the last word when it runs", "warning")]
        if stateful := query.stateful():
            word, place = stateful
            help_ = "this version runs select, filter, union all, unnest and common table expressions"
            return [_placed(Problem("MS030", f"{word} needs state over a stream, which comes with a later version", "sql", help_), place)]
        unknown = analyse(query, inputs).unknown
        return [_placed(Problem("MS024", f"unknown column `{name}`", "sql", nearest(name, known)), place) for name, place, known in unknown]

    def refuses_isolation(self) -> str:
        tree = self.query.tree
        help_ = "put the part that can fail into a query of its own: SELECT … FROM one input WHERE …"
        if not isinstance(tree, exp.Select) or len(self.query.references) != 1 or tree.args.get("laterals") or tree.find(exp.Subquery):
            return f"bad rows cannot be told apart in this query; {help_}"
        if tree.find(exp.CTE) or _MULTIPLYING.search(self.sql):
            return f"bad rows cannot be told apart where one row becomes several; {help_}"
        return ""

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        session = next(iter(frames.values())).sparkSession
        views = {name: _view(context.name, name) for name in frames}
        text = collected(freeze_clock(self.sql, context.clock) if context.clock else self.sql, context.aggregates)
        for name, frame in frames.items():
            frame.createOrReplaceTempView(views[name])
        try:
            result = session.sql(parse_query(text).with_views(views))
        finally:
            catalog = session._jsparkSession.sessionState().catalog()
            for view in views.values():  # not through the public catalog: that would also unpersist what the view shows
                catalog.dropTempView(view)
        return isolated(result, context.name) if context.isolate else result


def _view(node: str, table: str) -> str:
    """A name of its own for each input of each node."""
    return f"_millstream_{hashlib.sha256(f'{node}/{table}'.encode()).hexdigest()[:16]}"


def _placed(problem: Problem, place: Place | None) -> Problem:
    if place is None:
        return problem
    return Problem(
        problem.code, problem.message, problem.field, problem.help, problem.level, place.line, place.column, place.end - place.start
    )
