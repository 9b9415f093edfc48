"""The input columns that each column of a query is made of, found in its text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.lineage import Node, lineage
from sqlglot.optimizer.scope import Scope, build_scope

from millstream.plan.components.lineage import How, Origin, Origins
from millstream.sql.check.columns import qualified
from millstream.sql.check.query import Query


def origins_of(query: Query, inputs: Mapping[str, pa.Schema | None]) -> Origins | None:
    """None where the text does not show it: unknown schemas, pipes, or columns whose table is not certain."""
    if query.tree is None or query.piped or any(inputs.get(name) is None for name in query.tables):
        return None
    known = {name: schema for name, schema in inputs.items() if schema is not None}
    try:
        tree, tables = qualified(query, known)
        scope = build_scope(tree)
        if scope is None or not isinstance(tree, exp.Query):
            return None
        names = [item.alias_or_name for item in tree.selects]
        nodes = {name: lineage(name, tree, tables, dialect="spark", scope=scope) for name in names}
    except (SqlglotError, ValueError):
        return None
    places = {f"t{index}": name for index, name in enumerate(known)}
    found = {name: _origins(node, places) for name, node in nodes.items()}
    return {name: origins for name, origins in found.items() if origins is not None} if not _is_vague(scope) else None


def _is_vague(scope: Scope) -> bool:
    return any(True for _ in scope.expression.find_all(exp.Lateral, exp.Star, exp.Pivot)) and not _only_counts(scope)


def _only_counts(scope: Scope) -> bool:
    """Whether each star is that of `count(*)`."""
    return all(isinstance(star.parent, exp.Count) for star in scope.expression.find_all(exp.Star)) and not any(
        True for _ in scope.expression.find_all(exp.Lateral, exp.Pivot)
    )


def _origins(node: Node, places: Mapping[str, str]) -> tuple[Origin, ...] | None:
    found = list(_leaves(node, "IDENTITY"))
    if any(not isinstance(leaf.source, exp.Table) or leaf.source.name not in places for leaf, _ in found):
        return None
    return tuple(dict.fromkeys(Origin(places[leaf.source.name], leaf.name.rpartition(".")[2], how) for leaf, how in found))


def _leaves(node: Node, how: How) -> Iterator[tuple[Node, How]]:
    """The columns that a column is made of, each with what happens on the way to it."""
    how = _stronger(how, _how(node.expression))
    if not node.downstream:
        if not isinstance(node.source, exp.Query) or isinstance(node.expression, exp.Column):
            yield node, how
        return  # else a constant: it is made of nothing
    for below in node.downstream:
        yield from _leaves(below, how)


def _how(expression: exp.Expr) -> How:
    if any(True for _ in expression.find_all(exp.AggFunc)):
        return "AGGREGATION"
    plain = expression.unalias() if isinstance(expression, exp.Alias) else expression
    return "IDENTITY" if isinstance(plain, exp.Column | exp.Table | exp.Query | exp.Placeholder) else "TRANSFORMATION"


def _stronger(one: How, other: How) -> How:
    order: list[How] = ["IDENTITY", "TRANSFORMATION", "AGGREGATION"]
    return max(one, other, key=order.index)
