"""When the rows of a SQL query's inputs are late: the windows of its aggregates, as expressions over the rows that they read.

Told for aggregates that read a table directly. Their WHERE counts: a row that it leaves out is missing nowhere.
"""

from __future__ import annotations

from pydantic_core import PydanticCustomError
from sqlglot import exp

from millstream.plan.options import Duration
from millstream.plan.windows import SessionWindow, SlidingWindow, TumblingWindow
from millstream.plan.windows import closes as window_closes
from millstream.sql.check.prediction import Prediction
from millstream.sql.check.selects import window_calls


def closes(prediction: Prediction, table: str) -> str:
    """SQL over a row of a table: when the first result that it belongs to closes; empty when that cannot be told."""
    found = [text for select in prediction.selects if _reads(select, table) for text in [_closes(select)]]
    if not found or not all(found):
        return ""
    return found[0] if len(found) == 1 else f"least({', '.join(found)})"


def _reads(select: exp.Select, table: str) -> bool:
    source = select.args["from_"].this if select.args.get("from_") else None
    return isinstance(source, exp.Table) and ".".join(part.name for part in source.parts) == table


def _closes(select: exp.Select) -> str:
    calls = window_calls(select)
    window = _window(calls[0]) if calls else None
    if window is None:
        return ""
    text = window_closes(window, _unqualified(calls[0].expressions[0]))
    where = select.args.get("where")
    return f"CASE WHEN {_unqualified(where.this)} THEN {text} END" if where else text


def _window(call: exp.Anonymous) -> TumblingWindow | SlidingWindow | SessionWindow | None:
    spans = [argument.name for argument in call.expressions[1:] if isinstance(argument, exp.Literal)]
    try:
        if call.name.lower() == "session_window":
            return SessionWindow(gap=Duration(spans[0]))
        size, *more = (Duration(span) for span in spans)
        offset = more[1] if len(more) > 1 else Duration("0s")
        return SlidingWindow(size=size, slide=more[0], offset=offset) if more else TumblingWindow(size=size)
    except (PydanticCustomError, ValueError, IndexError):
        return None


def _unqualified(tree: exp.Expr) -> str:
    copied = tree.copy()
    for column in copied.find_all(exp.Column):
        column.set("table", None)
    return str(copied.sql(dialect="spark"))
