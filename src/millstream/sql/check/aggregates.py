"""The types of aggregates that Millstream writes in another way than Spark (`sql/catalyst/aggregates.py`), without Spark."""

from __future__ import annotations

from sqlglot import exp

from millstream.plan.expressions import expr


def with_own_types(text: str) -> str:
    """An expression of the same type, in which `count(DISTINCT …)` is the size of a set and `top_k` is a list."""
    return str(expr(text).tree.transform(_typed).sql(dialect="spark"))


def _typed(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct):
        return exp.cast(exp.null(), "int")
    if isinstance(node, exp.Anonymous) and node.name.lower() == "top_k" and len(node.expressions) == 2:
        return exp.func("collect_list", node.expressions[0], dialect="spark")
    return node
