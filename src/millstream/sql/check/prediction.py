"""How a query will run as a stream, as far as its text shows: row by row, window by window, as running totals, or incrementally.

Plans are cut into queries without Spark, so this is asked before Spark reads the text. Spark's plan has the last word: a query whose text
misled is kept up to date instead (`engine.decisions`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from sqlglot import exp

from millstream.sql.check.query import Query, clause_word, is_aggregate, is_nested, joins_tables, place_of, subquery_word
from millstream.sql.check.selects import aggregates, group_columns, group_keys, own, window_calls
from millstream.sql.check.table_joins import without_joins
from millstream.sql.check.window_scope import Refusal, refusals


@dataclass(frozen=True, slots=True)
class Prediction:
    """How a query will run."""

    kind: Literal["stateless", "windowed", "running", "incremental", "refused"]
    selects: tuple[exp.Select, ...] = ()
    """The aggregates by window, or the one aggregate of running totals."""
    has_tail: bool = False
    """Whether more is done with closed windows than Spark's stream can: it is done per epoch."""
    may_wait: bool = False
    """Whether parts of an incremental query may run as Spark's stream: aggregates by window, and joins."""
    refusal: Refusal | None = None
    """Why Spark cannot run it as a stream by itself."""

    def scans(self, table: str) -> int:
        """How often the aggregates read a table. Equal ones are computed once."""
        distinct = {select.sql(): select for select in self.selects}
        return sum(_scans(select, table) for select in distinct.values())


def _scans(node: exp.Expr, table: str) -> int:
    """How often a SELECT reads a table, itself and by the definitions that it reads."""
    found = 0
    for each in node.find_all(exp.Table):
        definition = _definition(node, each)
        if definition is None:
            found += ".".join(part.name for part in each.parts) == table
        elif not any(definition is around for around in _around(each)):
            found += _scans(definition, table)
    return found


def _around(node: exp.Expr) -> Iterable[exp.Expr]:
    while node.parent is not None:
        node = node.parent
        yield node


@lru_cache(maxsize=256)
def predict(text: str, tables: frozenset[str] = frozenset()) -> Prediction:
    """Look at a query; `tables` are dynamic ones, and no streams. What Spark cannot run as a stream by itself is kept up to date from
    changes, if it can be.
    """
    query = without_joins(text, tables)
    found = _predict(query)
    if found.kind != "refused" or cannot_be_kept(query):
        return found
    windowed = tuple(select for select in query.tree.find_all(exp.Select) if window_calls(select)) if query.tree else ()
    joins = query.tree is not None and any(map(joins_tables, query.tree.walk()))
    return Prediction("incremental", windowed, may_wait=joins or bool(windowed), refusal=found.refusal)


def _has_fixed_rows(union: exp.SetOperation) -> bool:
    """Whether one side of UNION ALL reads no table: its rows would be there again in every epoch."""
    return any(not any(isinstance(table.this, exp.Identifier) for table in side.find_all(exp.Table)) for side in (union.left, union.right))


def cannot_be_kept(query: Query) -> bool:
    """Whether a query has rows by chance or refers to itself. What the parser does not understand is left to Spark."""
    tree = query.tree
    if tree is None:
        return False
    return bool(tree.find(exp.TableSample)) or any(clause.args.get("recursive") for clause in tree.find_all(exp.With))


def _predict(query: Query) -> Prediction:
    """What the parser does not understand is taken as it is."""
    if query.tree is None:
        return Prediction("stateless")
    if query.stateful() is None:
        fixed = next((node for node in query.tree.find_all(exp.SetOperation) if _has_fixed_rows(node)), None)
        if fixed is None or not query.references:
            return Prediction("stateless")
        return Prediction("refused", refusal=Refusal("UNION ALL of a stream and of fixed rows", place_of(query.text, fixed)))
    for node in query.tree.walk():
        if word := subquery_word(node) or clause_word(node):
            return Prediction("refused", refusal=Refusal(f"{word} is not supported yet", place_of(query.text, node)))
    windowed = [select for select in query.tree.find_all(exp.Select) if window_calls(select)]
    if not windowed:
        return _running(query, query.tree)
    found = next(refusals(query, windowed), None)
    if found is not None:
        return Prediction("refused", refusal=found)
    others = [select for select in query.tree.find_all(exp.Select) if select is not windowed[0]]
    return Prediction("windowed", tuple(windowed), has_tail=len(windowed) > 1 or any(map(_per_epoch, others)))


def _running(query: Query, tree: exp.Expr) -> Prediction:
    """One aggregate without a window runs in update mode, as long as nothing above it would have to take rows back."""
    adding = [select for select in tree.find_all(exp.Select) if aggregates(select)]
    for node in tree.walk():
        word = _taking_back(node, tree, adding)
        if word:
            return Prediction("refused", refusal=Refusal(f"{word} is not supported yet without a window", place_of(query.text, node)))
    nested = next((select for select in adding if is_nested(select)), None)
    if nested is not None:
        return Prediction("refused", refusal=Refusal("an aggregate in a subquery is not supported yet", place_of(query.text, nested)))
    if len(adding) > 1:
        return Prediction("refused", refusal=Refusal("an aggregate over an aggregate is not supported yet without a window", None))
    if adding and adding[0].args.get("group") and (reason := _keyless(tree, adding[0])):
        return Prediction("refused", refusal=Refusal(reason, place_of(query.text, adding[0].args["group"])))
    return Prediction("running", selects=tuple(adding))


def _keyless(tree: exp.Expr, adding: exp.Select) -> str:
    """Why a later row of running totals could not replace an earlier one; empty when it can."""
    if adding.args["group"].find(exp.Rollup, exp.Cube, exp.GroupingSets):
        return "ROLLUP, CUBE and GROUPING SETS are not supported yet without a window: totals cannot be told from groups whose key is null"
    if totals_key(tree, adding) is not None:
        return ""
    unnamed = [item for item in adding.selects if not item.alias_or_name and not any(map(is_aggregate, item.walk()))]
    if tree is adding and unnamed:
        return f"a column that rows are grouped by needs a name to be updated by: `{unnamed[0].sql(dialect='spark')} AS name`"
    return "a result without the columns it is grouped by cannot be updated; add them to SELECT"


def totals_key(tree: exp.Expr, adding: exp.Select) -> tuple[str, ...] | None:
    """What the keys of the one aggregate are called in the result of a query; None where one of them is not in it."""
    if tree is adding:
        names = group_columns(adding)
        return names if names or not group_keys(adding) else None
    if not isinstance(tree, exp.Select) or not tree.args.get("from_"):
        return None
    source = tree.args["from_"].this
    inner = source.this if isinstance(source, exp.Subquery) else _definition(tree, source) if isinstance(source, exp.Table) else None
    keys = totals_key(inner, adding) if inner is not None else None
    if keys is None or any(item.is_star for item in tree.selects):
        return keys
    shown = {item.unalias().name.lower(): item.alias_or_name for item in tree.selects if isinstance(item.unalias(), exp.Column)}
    return tuple(shown[key.lower()] for key in keys) if all(key.lower() in shown for key in keys) else None


def _definition(select: exp.Expr, table: exp.Table) -> exp.Expr | None:
    """The common table expression that a table is."""
    for cte in select.root().find_all(exp.CTE):
        if cte.alias.lower() == table.name.lower() and not table.db:
            definition: exp.Expr = cte.this
            return definition
    return None


def _taking_back(node: exp.Expr, tree: exp.Expr, adding: list[exp.Select]) -> str:
    if joins_tables(node):
        return "a join of streams"
    if isinstance(node, exp.Having):
        return "HAVING"
    if isinstance(node, exp.Window):
        return "a window function"
    if isinstance(node, exp.Order | exp.Limit | exp.Sort) and not isinstance(node.parent, exp.WithinGroup | exp.AggFunc):
        return node.key.upper() + (" BY" if isinstance(node, exp.Order | exp.Sort) else "")
    if isinstance(node, exp.Distinct):
        return "DISTINCT"
    if isinstance(node, exp.SetOperation) and (node.args.get("distinct") or not isinstance(node, exp.Union) or _above(node, tree, adding)):
        return f"{node.key.upper()} over an aggregate" if _above(node, tree, adding) else f"{node.key.upper()} without ALL"
    if (
        isinstance(node, exp.Where)
        and isinstance(node.parent, exp.Select)
        and node.parent not in adding
        and _above(node.parent, tree, adding)
    ):
        return "a condition on an aggregate"
    return ""


def _above(node: exp.Expr, tree: exp.Expr, adding: list[exp.Select]) -> bool:
    """Whether an aggregate stands below a node, in its text or in a definition that it reads."""
    waiting, seen = [node], [node]
    while waiting:
        for table in waiting.pop().find_all(exp.Table):
            definition = _definition(tree, table)
            if definition is not None and all(definition is not each for each in seen):
                waiting.append(definition)
                seen.append(definition)
    inner = [select for each in seen for select in each.find_all(exp.Select)]
    return any(select is not node and any(select is each for each in inner) for select in adding)


def _per_epoch(select: exp.Select) -> bool:
    """Whether a SELECT above a windowed aggregate does more than Spark's stream can."""
    if aggregates(select) or select.args.get("distinct") or select.args.get("joins"):
        return True
    return any(isinstance(node, exp.Window) for node in own(select))
