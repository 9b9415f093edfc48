"""How a query runs as a stream: as it is, as running totals, or cut in two.

Spark runs one windowed aggregate as a stream, and all groups of a window leave it in the same epoch, complete and once. So whatever stands
above and goes window by window (ROW_NUMBER, COUNT DISTINCT, an aggregate over it, a join of two on the window) is plain SQL over the
rows of one epoch. The cut is made in the text: each windowed aggregate becomes a part of its own, and a table in what is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from sqlglot import exp

from millstream.plan.components import TextPlace
from millstream.sql.check.query import (
    Query,
    clause_word,
    is_aggregate,
    is_nested,
    joins_tables,
    parse_query,
    place_of,
    replace,
    subquery_word,
)
from millstream.sql.check.selects import (
    aggregates,
    end_of_group,
    group_columns,
    group_keys,
    own,
    place_of_select,
    window_calls,
    window_identity,
)
from millstream.sql.check.table_joins import without_joins
from millstream.sql.rewrites.window_scope import Refusal, refusals

PART = "_part_"


@dataclass(frozen=True, slots=True)
class Split:
    """A query as its stream runs it."""

    kind: Literal["stateless", "windowed", "running", "incremental", "refused"]
    parts: tuple[str, ...] = ()
    """The windowed aggregates, as queries of their own."""
    rest: str = ""
    """What is left to do per epoch, over tables named `_part_0`, `_part_1`, …; empty: nothing."""
    selects: tuple[exp.Select, ...] = ()
    """The windowed aggregates in the tree."""
    refusal: Refusal | None = None
    """Why Spark cannot run it as a stream by itself."""


@lru_cache(maxsize=256)
def split(text: str, tables: frozenset[str] = frozenset()) -> Split:
    """Cut a query; `tables` are dynamic ones, and no streams. What Spark cannot run as a stream by itself is kept up to date from changes,
    if it can be.
    """
    query = without_joins(text, tables)
    found = _split(query)
    if found.kind != "refused" or cannot_be_kept(query):
        return found
    return Split("incremental", refusal=found.refusal)


def _has_fixed_rows(union: exp.SetOperation) -> bool:
    """Whether one side of UNION ALL reads no table: its rows would be there again in every epoch."""
    return any(not any(isinstance(table.this, exp.Identifier) for table in side.find_all(exp.Table)) for side in (union.left, union.right))


def cannot_be_kept(query: Query) -> bool:
    """Whether a query has rows by chance or refers to itself. What the parser does not understand is left to Spark."""
    tree = query.tree
    if tree is None:
        return False
    return bool(tree.find(exp.TableSample)) or any(clause.args.get("recursive") for clause in tree.find_all(exp.With))


def _split(query: Query) -> Split:
    """Cut a query. What the parser does not understand is taken as it is."""
    if query.tree is None:
        return Split("stateless")
    if query.stateful() is None:
        fixed = next((node for node in query.tree.find_all(exp.SetOperation) if _has_fixed_rows(node)), None)
        if fixed is None or not query.references:
            return Split("stateless")
        return Split("refused", refusal=Refusal("UNION ALL of a stream and of fixed rows", place_of(query.text, fixed)))
    for node in query.tree.walk():
        if word := subquery_word(node) or clause_word(node):
            return Split("refused", refusal=Refusal(f"{word} is not supported yet", place_of(query.text, node)))
    windowed = [select for select in query.tree.find_all(exp.Select) if window_calls(select)]
    if not windowed:
        return _running(query, query.tree)
    found = next(refusals(query, windowed), None)
    if found is not None:
        return Split("refused", refusal=found)
    return _windowed(query, query.tree, windowed)


def window_of(part: str, remembering: Iterable[str] = ()) -> str:
    """Which windows a part has. Equal for parts whose windows close in the same epochs: of the same length, step and origin, and read from
    inputs that do not hold rows back themselves.
    """
    tree = parse_query(part).tree
    calls = [call for select in tree.find_all(exp.Select) for call in window_calls(select)] if tree is not None else []
    held = sorted(name for name in remembering if name in parse_query(part).tables)
    return " ".join([*(window_identity(call) for call in calls[:1]), *(f"over {name}" for name in held)])


def _windowed(query: Query, tree: exp.Expr, windowed: list[exp.Select]) -> Split:
    if len(windowed) == 1 and not any(_per_epoch(select) for select in tree.find_all(exp.Select) if select is not windowed[0]):
        whole = _keyed_sessions(query.text, windowed[0], place_of_select(query.text, windowed[0]))
        return Split("windowed", (whole,), selects=tuple(windowed))
    parts: dict[str, str] = {}
    edits: list[tuple[TextPlace, str]] = []
    definitions = _definitions(query, tree)
    for select in windowed:
        place = place_of_select(query.text, select)
        if place is None:
            return Split("refused", refusal=Refusal("this query cannot be cut", None))
        body = _keyed_sessions(query.text[place.start : place.end], select, None)
        text = f"{definitions}{body}" if _reads_definitions(tree, select) else body
        parts.setdefault(text, f"{PART}{len(parts)}")
        edits.append((place, f"SELECT * FROM {parts[text]} "))
    return Split("windowed", tuple(parts), _without_unused(replace(query.text, edits)), tuple(windowed))


def _running(query: Query, tree: exp.Expr) -> Split:
    """One aggregate without a window runs in update mode, as long as nothing above it would have to take rows back."""
    adding = [select for select in tree.find_all(exp.Select) if aggregates(select)]
    for node in tree.walk():
        word = _taking_back(node, tree, adding)
        if word:
            return Split("refused", refusal=Refusal(f"{word} is not supported yet without a window", place_of(query.text, node)))
    nested = next((select for select in adding if is_nested(select)), None)
    if nested is not None:
        return Split("refused", refusal=Refusal("an aggregate in a subquery is not supported yet", place_of(query.text, nested)))
    if len(adding) > 1:
        return Split("refused", refusal=Refusal("an aggregate over an aggregate is not supported yet without a window", None))
    if adding and adding[0].args.get("group") and (reason := _keyless(tree, adding[0])):
        return Split("refused", refusal=Refusal(reason, place_of(query.text, adding[0].args["group"])))
    return Split("running", selects=tuple(adding))


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


def _keyed_sessions(text: str, select: exp.Select, place: TextPlace | None) -> str:
    """Spark refuses sessions without a key, and optimises a constant away."""
    calls = window_calls(select)
    group = select.args["group"].expressions
    if len(group) > 1 or calls[0].name.lower() != "session_window":
        return text
    body = text[place.start : place.end] if place else text
    end = end_of_group(body)
    time = calls[0].expressions[0].sql(dialect="spark")
    keyed = f"{body[:end].rstrip()}, unix_seconds({time}) * 0 {body[end:]}" if end is not None else body
    return text[: place.start] + keyed + text[place.end :] if place else keyed


def _definitions(query: Query, tree: exp.Expr) -> str:
    """The WITH clause of a query, as it stands before its SELECT."""
    clause = tree.args.get("with_")
    outer = tree if isinstance(tree, exp.Select) else next(iter(tree.find_all(exp.Select)), None)
    if clause is None or not isinstance(outer, exp.Select):
        return ""
    place = place_of_select(query.text, outer)
    return query.text[: place.start] if place else ""


def _reads_definitions(tree: exp.Expr, select: exp.Select) -> bool:
    names = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    return any(table.name.lower() in names for table in select.find_all(exp.Table))


def _without_unused(text: str) -> str:
    """Definitions that only the parts used would still ask for tables that are not there."""
    query = parse_query(text)
    if query.tree is None:
        return text
    edits = [(place, "SELECT 1 ") for place in _unused(query, query.tree)]
    return replace(text, edits)


def _unused(query: Query, tree: exp.Expr) -> Iterator[TextPlace]:
    for cte in tree.find_all(exp.CTE):
        readers = [table for table in tree.find_all(exp.Table) if table.name.lower() == cte.alias.lower()]
        if not readers and isinstance(cte.this, exp.Select):
            place = place_of_select(query.text, cte.this)
            if place:
                yield place
