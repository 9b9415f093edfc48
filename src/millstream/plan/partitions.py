"""Whether what stands above windowed aggregates goes window by window, so that the rows of one epoch are enough for it.

A column carries the window when it is the window itself, or its start or end (a session's end only: sessions of different length can start
together). It is followed through the SELECTs by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from millstream.plan.query import Place, Query, place_of
from millstream.plan.selects import aggregates, is_window, own, resolved


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a query cannot run as a stream."""

    reason: str
    place: Place | None


def refusals(query: Query, windowed: list[exp.Select]) -> Iterator[Refusal]:
    """What stands in the way, first things first."""
    tree = query.tree
    assert tree is not None
    inside = {id(node) for select in windowed for node in select.walk()}
    for select in windowed:
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
    keys = node.args.get("partition_by") or () if isinstance(node, exp.Window) else ()
    if isinstance(node, exp.Window) and not any(_carries(key, tree, windowed, _select_of(node)) for key in keys):
        return f"a window function {above} must have the window in its PARTITION BY"
    if isinstance(node, exp.Join) and not isinstance(node.this, exp.Lateral | exp.Unnest) and not _joined(node, tree, windowed):
        return f"a join {above} must compare the windows of both sides"
    if isinstance(node, exp.Select):
        return _refused_select(node, tree, windowed, above)
    return ""


def _refused_select(select: exp.Select, tree: exp.Expr, windowed: list[exp.Select], above: str) -> str:
    if not any(inner is part for inner in select.find_all(exp.Select) for part in windowed) and _reads(select, tree, windowed):
        return "rows of a stream and windowed aggregates cannot be combined yet"
    if aggregates(select):
        group = select.args.get("group")
        keys = [resolved(select, key).unalias() for key in group.expressions] if group else []
        if not any(_carries(key, tree, windowed, select) for key in keys):
            return f"an aggregate {above} must have the window in its GROUP BY"
    if select.args.get("distinct") and not any(_carries(item.unalias(), tree, windowed, select) for item in select.selects):
        return f"DISTINCT {above} must keep the window"
    return ""


def _reads(select: exp.Select, tree: exp.Expr, windowed: list[exp.Select]) -> bool:
    """Whether a SELECT outside of the parts reads rows of a stream itself, and something uses it beside the parts."""
    ctes = {cte.alias: cte for cte in tree.find_all(exp.CTE)}
    if any(isinstance(node, exp.Table) and node.name not in ctes for node in own(select)):
        definition = select.find_ancestor(exp.CTE)
        readers = [table for table in tree.find_all(exp.Table) if definition is not None and table.name == definition.alias]
        return not readers or any(all(id(table) != id(node) for part in windowed for node in part.walk()) for table in readers)
    return False


def _joined(join: exp.Join, tree: exp.Expr, windowed: list[exp.Select]) -> bool:
    select = _select_of(join)
    if any(_carries(exp.column(name.name), tree, windowed, select) for name in join.args.get("using") or ()):
        return True
    on = join.args.get("on")
    conditions = list(on.flatten()) if isinstance(on, exp.And) else [on]
    pairs = [node for node in conditions if isinstance(node, exp.EQ)]
    return any(_carries(pair.this, tree, windowed, select) and _carries(pair.expression, tree, windowed, select) for pair in pairs)


def _carries(item: exp.Expr, tree: exp.Expr, windowed: list[exp.Select], select: exp.Select | None) -> bool:
    """Whether an expression is a column that carries the window, in the eyes of a SELECT."""
    if not isinstance(item, exp.Column | exp.Dot) or select is None:
        return False
    names = [part.name for part in item.find_all(exp.Identifier)] if isinstance(item, exp.Dot) else [part.name for part in item.parts]
    known = _inputs(select, tree, windowed)
    return names[-1] in known or (len(names) > 1 and names[-1].lower() in {"start", "end"} and names[-2] in known)


def _inputs(select: exp.Select, tree: exp.Expr, windowed: list[exp.Select]) -> set[str]:
    """Columns that carry the window in what a SELECT reads."""
    sources = [select.args.get("from_"), *(select.args.get("joins") or ())]
    found: set[str] = set()
    for source in sources:
        target = source.this if source is not None else None
        if isinstance(target, exp.Subquery):
            found |= _outputs(target.this, tree, windowed)
        elif isinstance(target, exp.Table):
            cte = next((cte for cte in tree.find_all(exp.CTE) if cte.alias == target.name), None)
            found |= _outputs(cte.this, tree, windowed) if cte is not None else set()
    return found


def _outputs(query: exp.Expr, tree: exp.Expr, windowed: list[exp.Select]) -> set[str]:
    """Columns that carry the window in what a query gives."""
    if isinstance(query, exp.Union):
        return _outputs(query.this, tree, windowed) & _outputs(query.expression, tree, windowed)
    if not isinstance(query, exp.Select):
        return set()
    if any(query is part for part in windowed):
        return {item.alias_or_name for item in query.selects if _is_edge(item.unalias())}
    known = _inputs(query, tree, windowed)
    found = set(known) if any(item.is_star for item in query.selects) else set()
    return found | {item.alias_or_name for item in query.selects if _carries(item.unalias(), tree, windowed, query)}


def _is_edge(item: exp.Expr) -> bool:
    """The window, its end, or the start of one of fixed size."""
    if is_window(item):
        return True
    if not isinstance(item, exp.Dot) or not is_window(item.this):
        return False
    return bool(item.expression.name.lower() == "end" or item.this.name.lower() == "window")


def _select_of(node: exp.Expr) -> exp.Select | None:
    return node.find_ancestor(exp.Select)
