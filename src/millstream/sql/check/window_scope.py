"""Whether what stands above windowed aggregates goes window by window, so that the rows of one epoch are enough for it.

A column carries the window when it is the window itself, or its start or end (a session's end only: sessions of different length can start
together). It is followed through the SELECTs by name and table, together with the kind of its window: windows of different lengths close in
different epochs. Spark's plan is looked at in the same way before anything runs (`sql.analysed.gate`), by identity instead of names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from millstream.plan.components import TextPlace
from millstream.sql.check.query import Query, place_of
from millstream.sql.check.selects import WINDOWS, aggregates, is_window, own, resolve_key, window_calls, window_identity


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a query cannot run as a stream."""

    reason: str
    place: TextPlace | None


def refusals(query: Query, windowed: list[exp.Select]) -> Iterator[Refusal]:
    """What stands in the way, first things first."""
    tree = query.tree
    assert tree is not None
    inside = {id(node) for select in windowed for node in select.walk()}
    for select in windowed:
        group = select.args["group"]
        if not any(is_window(resolve_key(select, key).unalias()) for key in group.expressions) and not group.args.get("all"):
            reason = "GROUP BY must hold the window itself; its start and end can be selected: `window.start`"
            yield Refusal(reason, place_of(query.text, group))
        word = next((word for word in ("order", "limit", "distinct") if select.args.get(word)), "")
        if word:
            yield Refusal(f"{word.upper()} in a windowed aggregate needs all windows at once", place_of(query.text, select.args[word]))
        lower = next((other for other in select.find_all(exp.Select) if other is not select and _stateful(other)), None)
        if lower is not None:
            yield Refusal("a windowed aggregate over another stateful SELECT is not supported yet", place_of(query.text, lower))
    for node in tree.walk():
        if id(node) in inside:
            continue
        reason = _refused(node, tree, windowed)
        if reason:
            yield Refusal(reason, place_of(query.text, node))


def _stateful(select: exp.Select) -> bool:
    return aggregates(select) or bool(select.args.get("joins") or select.args.get("distinct"))


def _refused(node: exp.Expr, tree: exp.Expr, windowed: list[exp.Select]) -> str:
    above = "above a windowed aggregate"
    if isinstance(node, exp.Order | exp.Limit | exp.Sort) and not node.find_ancestor(exp.Window, exp.WithinGroup, exp.AggFunc):
        return f"{node.key.upper()} {above} needs all windows at once; a window function with PARTITION BY the window does not"
    if isinstance(node, exp.SetOperation) and (node.args.get("distinct") or not isinstance(node, exp.Union)):
        return f"{node.key.upper()} without ALL {above} is not supported yet"
    keys = _partition(node) if isinstance(node, exp.Window) else ()
    if isinstance(node, exp.Window) and not any(_carries(key, tree, windowed, _select_of(node)) for key in keys):
        return f"a window function {above} must have the window in its PARTITION BY"
    if isinstance(node, exp.Join) and not isinstance(node.this, exp.Lateral | exp.Unnest) and not _joined(node, tree, windowed):
        return f"a join {above} must compare the same window of both sides in ON: of equal length, step and origin"
    if isinstance(node, exp.Select):
        return _refused_select(node, tree, windowed, above)
    return ""


def _refused_select(select: exp.Select, tree: exp.Expr, windowed: list[exp.Select], above: str) -> str:
    if not any(inner is part for inner in select.find_all(exp.Select) for part in windowed) and _reads(select, tree, windowed):
        return "rows of a stream and windowed aggregates cannot be combined yet"
    if aggregates(select):
        group = select.args.get("group")
        keys = [resolve_key(select, key).unalias() for key in group.expressions] if group else []
        if not any(_carries(key, tree, windowed, select) for key in keys):
            return f"an aggregate {above} must have the window in its GROUP BY"
    if select.args.get("distinct") and not any(_carries(item.unalias(), tree, windowed, select) for item in select.selects):
        return f"DISTINCT {above} must keep the window"
    return ""


def _reads(select: exp.Select, tree: exp.Expr, windowed: list[exp.Select]) -> bool:
    """Whether a SELECT outside of the parts reads rows of a stream itself, and something uses it beside the parts."""
    ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    if any(isinstance(node, exp.Table) and node.name.lower() not in ctes for node in own(select)):
        definition = select.find_ancestor(exp.CTE)
        readers = [table for table in tree.find_all(exp.Table) if definition is not None and table.name.lower() == definition.alias.lower()]
        return not readers or any(all(id(table) != id(node) for part in windowed for node in part.walk()) for table in readers)
    return False


def _partition(window: exp.Window) -> list[exp.Expr]:
    """PARTITION BY of a window function, also where it stands in a WINDOW clause."""
    select, name = _select_of(window), window.alias.lower()
    named = [each for each in (select.args.get("windows") or () if select and name else ()) if each.name.lower() == name]
    return [key for each in (window, *named) for key in each.args.get("partition_by") or ()]


def _joined(join: exp.Join, tree: exp.Expr, windowed: list[exp.Select]) -> bool:
    """Whether a join compares the same window on both sides."""
    select = _select_of(join)
    sides = list(_inputs(select, tree, windowed).values()) if select is not None else []
    for name in join.args.get("using") or ():
        if len({side.get(name.name.lower()) for side in sides} - {None}) == 1 and all(name.name.lower() in side for side in sides):
            return True
    on = join.args.get("on")
    conditions = list(on.flatten()) if isinstance(on, exp.And) else [on]
    pairs = [node for node in conditions if isinstance(node, exp.EQ)]
    windows = [tuple(_carries(side, tree, windowed, select) for side in (pair.this, pair.expression)) for pair in pairs]
    return any(one is not None and one == other for one, other in windows)


Edge = tuple[str, str]
"""The kind of a window, and which part of it: `window`, `start` or `end`."""


def _carries(item: exp.Expr, tree: exp.Expr, windowed: list[exp.Select], select: exp.Select | None) -> Edge | None:
    """The window that an expression carries, in the eyes of a SELECT."""
    if not isinstance(item, exp.Column | exp.Dot) or select is None:
        return None
    parts = item.find_all(exp.Identifier) if isinstance(item, exp.Dot) else item.parts
    names = [part.name.lower() for part in parts]
    return _found(names, _inputs(select, tree, windowed))


def _found(names: list[str], inputs: dict[str, dict[str, Edge]]) -> Edge | None:
    """A column by its name, by its table and name, or an edge of one of these."""
    if len(names) > 1 and names[-1] in {"start", "end"} and (whole := _found(names[:-1], inputs)) is not None:
        return _edge(whole, names[-1])
    tables = [inputs.get(names[0], {})] if len(names) > 1 else list(inputs.values())
    found = [table[names[-1]] for table in tables if names[-1] in table] if len(names) < 3 else []
    return found[0] if len(found) == 1 else None


def _edge(whole: Edge, name: str) -> Edge | None:
    """Sessions of different length can start together: only their end says when they close."""
    return None if whole[1] != "window" or (name == "start" and whole[0].startswith("session")) else (whole[0], name)


def _inputs(select: exp.Select, tree: exp.Expr, windowed: list[exp.Select]) -> dict[str, dict[str, Edge]]:
    """What a SELECT reads: the name of each table → its columns that carry a window."""
    sources = [select.args.get("from_"), *(select.args.get("joins") or ())]
    found: dict[str, dict[str, Edge]] = {}
    for source in sources:
        target = source.this if source is not None else None
        if isinstance(target, exp.Subquery):
            found[target.alias.lower()] = _outputs(target.this, tree, windowed)
        elif isinstance(target, exp.Table):
            cte = next((cte for cte in tree.find_all(exp.CTE) if cte.alias.lower() == target.name.lower()), None)
            found[target.alias_or_name.lower()] = _outputs(cte.this, tree, windowed) if cte is not None else {}
    return found


def _outputs(query: exp.Expr, tree: exp.Expr, windowed: list[exp.Select]) -> dict[str, Edge]:
    """Columns that carry the window in what a query gives."""
    if isinstance(query, exp.Union):
        left, right = (_outputs(side, tree, windowed) for side in (query.this, query.expression))
        return {name: edge for name, edge in left.items() if right.get(name) == edge}
    if isinstance(query, exp.Subquery):
        return _outputs(query.this, tree, windowed)
    if not isinstance(query, exp.Select):
        return {}
    if any(query is part for part in windowed):
        kind = window_identity(window_calls(query)[0])
        edges = {item.alias_or_name.lower(): _own_edge(item.unalias(), kind) for item in query.selects}
    else:
        known = list(_inputs(query, tree, windowed).values()) if any(item.is_star for item in query.selects) else []
        edges = {name: edge for table in known for name, edge in table.items()}
        edges |= {item.alias_or_name.lower(): _carries(item.unalias(), tree, windowed, query) for item in query.selects if not item.is_star}
    return {name: edge for name, edge in edges.items() if edge is not None}


def _own_edge(item: exp.Expr, kind: str) -> Edge | None:
    """The window that a windowed aggregate is grouped by, or an edge of it: as a call, or by Spark's name for it."""
    if is_window(item) or (isinstance(item, exp.Column) and len(item.parts) == 1 and item.name.lower() in WINDOWS):
        return kind, "window"
    if isinstance(item, exp.Dot) and is_window(item.this):
        return _edge((kind, "window"), item.expression.name.lower())
    if isinstance(item, exp.Column) and len(item.parts) == 2 and item.table.lower() in WINDOWS:
        return _edge((kind, "window"), item.name.lower())
    return None


def _select_of(node: exp.Expr) -> exp.Select | None:
    return node.find_ancestor(exp.Select)
