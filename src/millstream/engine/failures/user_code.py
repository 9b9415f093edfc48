"""Failures in the user's Python, and rows that Millstream's expressions refuse. Marks in the text name the node and the key."""

from __future__ import annotations

import re

from millstream.engine.failures.scene import Scene
from millstream.errors import Diagnostic, Span
from millstream.plan.components.arrow_sink import ArrowSink
from millstream.plan.components.arrow_transform import ArrowTransform
from millstream.plan.functions import FunctionRef
from millstream.plan.nodes import AnyNode, TransformNode
from millstream.sql.check.calls import mentions
from millstream.sql.check.query import parse_query
from millstream.sql.check.scalar_subqueries import places_of_scalars
from millstream.worker import marks
from millstream.worker.mistakes import is_mistake

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)(?:\n\s+(?!File)([^\n]+))?')
_KEYED = {
    marks.TIMEOUT: ("MS076", "correct the function, or raise `timeout`; the epoch is repeated, and no row is lost"),
    marks.STATE: ("MS077", "declare the state as it was and add another, or `--reset QUERY` starts anew without state"),
}
_ON_ERROR = "`on_error: drop` leaves such rows out, `on_error: {dead_letter: SINK}` keeps them"
_HELP = {
    "MS176": "name columns that no two rows of the result share, or leave `primary_key` out",
    "MS180": "choose one value, such as `max(…)`, or add a condition so that one row is left",
}
_VALUE = "WrongValueError"
"""The exception for a result whose columns are right, but not a value of one row."""


def refused_row(text: str, scene: Scene) -> Diagnostic | None:
    """A row that Millstream's own expressions refuse."""
    found = marks.find_refusal(text)
    if found is None:
        return None
    code, name, option, sentence = found[1], found[2], found[3], found[4].strip()
    node = scene.node(name)
    if node is not None and node.options.event_time is not None and option == "event_time":
        sentence = node.options.event_time.unusable(sentence)
    help_ = (node.component.refusal_help(code) if node else "") or _HELP.get(code, _ON_ERROR)
    place = (_place_of_scalar(scene) if code == "MS180" else None) or scene.place(node, option)
    return Diagnostic(code, f"`{name}`: {sentence}", place, help=help_, node=name)


def _place_of_scalar(scene: Scene) -> Span | None:
    """The one scalar subquery of the nodes that may return several rows. The plan does not say which of several it was: a place in it
    would make another plan of a query to which a comment is added.
    """
    texts = [(node, parse_query(str(getattr(node.component, "sql", "")))) for node in scene.nodes]
    found = [(node, place) for node, query in texts for place in places_of_scalars(query)]
    if len(found) != 1:
        return None
    ((node, at),) = found
    return node.text_place("sql", line=at.line, column=at.column, width=at.end - at.start)


def function_of_sql(text: str, scene: Scene) -> Diagnostic | None:
    """A function that SQL called."""
    mark = marks.find(marks.FUNCTION, text)
    if mark is None:
        return None
    name = mark[1].strip()
    transforms = [node for node in scene.nodes if isinstance(node, TransformNode)]
    callers = [node for node in transforms if mentions(node.component.model_dump_json(), [name])]
    named = f"function `{name}`" + (f", called by {', '.join(f'`{node.name}`' for node in callers)}," if callers else "")
    place, node = (callers[0].place("sql"), callers[0].name) if callers else (None, "")
    if wrong := marks.find(marks.WRONG_RESULT, text):
        help_ = "return one value per row, of the declared type, or correct `returns`"
        message = f"{named} returned a value that does not match its declaration: {wrong[1].strip()}"
        return Diagnostic("MS064", message, place, help=help_, node=node, cause=name)
    raised = _exception_line(text, mark.start())
    help_ = _correct(text) + ("" if is_mistake(raised) else ", or let it return null for what it cannot handle")
    message = f"{named} raised {raised}"
    return Diagnostic("MS063", message, place, detail=_user_frame(text), help=help_, node=node, cause=name)


def function_of_node(text: str, scene: Scene) -> Diagnostic | None:
    """A function of a `python` or `process` node."""
    mark = marks.find(marks.NODE, text)
    if mark is None:
        return None
    name = mark[1].split()[0]
    node = scene.node(name)
    place, key = scene.place(node, "function"), marks.find(marks.AT_KEY, text)
    at_key = f"key: {key[1]}" if key else ""
    if wrong := marks.find(marks.WRONG_SCHEMA, text):
        option = "output" if node and node.component.type == "process" else "schema"
        declared = f"let {_function(node)} return what is declared, or correct `{option}`"
        if node is not None and isinstance(node.component, ArrowTransform):
            declared = f"let `process` of plugin `{node.component.type}` return the columns that `output_schema` declares"
        help_ = declared + (f"; {_ON_ERROR}" if _VALUE in text else "")
        return Diagnostic("MS064", f"`{name}`: {wrong[1].strip()}", place, detail=at_key, help=help_, node=name)
    for kind, (code, help_) in _KEYED.items():
        if found := marks.find(kind, text):
            return Diagnostic(code, f"`{name}`: {found[1].strip()}", place, detail=_user_frame(text), help=help_, node=name)
    detail = "\n".join(part for part in (at_key, _user_frame(text)) if part)
    raised = _exception_line(text, mark.start())
    isolates = node is not None and node.kind == "transform"
    help_ = _correct(text) + (f"; if rows are at fault, {_ON_ERROR}" if isolates and not is_mistake(raised) else "")
    plugin = node is None or isinstance(node.component, ArrowTransform | ArrowSink)  # side outputs are no nodes
    called = f"the plugin of `{name}`" if plugin else f"the function of `{name}`"
    return Diagnostic("MS063", f"{called} raised {raised}", place, detail=detail, help=help_, node=name)


def unstarted_worker(text: str, scene: Scene) -> Diagnostic | None:
    """A Python worker that did not start in time, on a busy machine: a retry may pass."""
    if "Python worker failed to connect" not in text:
        return None
    return Diagnostic("MS069", f"a Python worker for `{scene.where}` did not start in time", scene.place(scene.current), node=scene.where)


def dead_worker(text: str, scene: Scene) -> Diagnostic | None:
    if "Python worker exited unexpectedly" not in text:
        return None
    plugins = [node for node in scene.nodes if isinstance(node.component, ArrowTransform | ArrowSink)]
    python = [*(node for node in scene.nodes if node.component.type in {"python", "process", "script", "onnx"}), *plugins]
    only = python[0] if len(python) == 1 else None
    name = f" of `{only.name}`" if only else ""
    smaller = "set a smaller `batch_size`" if not plugins else "let sources read less in an epoch, or the plugin keep less"
    help_ = f"the system may have killed it for its memory use: {smaller}"
    message = f"the Python worker{name} died while it processed a batch"
    return Diagnostic("MS065", message, scene.place(only, "function"), help=help_, node=only.name if only else "")


def _exception_line(text: str, before: int) -> str:
    """The line that names the exception: the last one before a mark, else the last line."""
    return _last_line(text[:before]) or _last_line(text)


def _correct(text: str) -> str:
    """The advice to correct the function, at the line that raised."""
    frame = _own_frame(text)
    return f"correct the function at {frame[1]}:{frame[2]}" if frame else "correct the function"


def _function(node: AnyNode | None) -> str:
    """A node's function with its place, as far as it is known here."""
    function = getattr(node.component, "function", None) if node else None
    return f"`{function.line or function.reference}`" if isinstance(function, FunctionRef) else "the function"


def _user_frame(text: str) -> str:
    """The user's own frame, with its line; empty when it is not among the frames."""
    frame = _own_frame(text)
    if frame is None:
        return ""
    file, line, name, code = frame.groups()
    return f"{file}:{line} in {name}" + (f"\n    {code.strip()}" if code else "")


def _own_frame(text: str) -> re.Match[str] | None:
    """The last frame in the user's code."""
    frames = [match for match in _FRAME.finditer(text) if not _foreign(match[1])]
    return frames[-1] if frames else None


def _last_line(text: str) -> str:
    lines = [
        line.strip()
        for line in text.rstrip().splitlines()
        if re.match(r"^\s*[\w.]*(?:Error|Exception|Exit|Interrupt|Warning|Invalid|Cancelled)\b", line)
    ]
    return lines[-1][:300] if lines else ""


def _foreign(file: str) -> bool:
    return (
        "/pyspark/" in file or "/millstream/" in file or "pyspark.zip" in file or file.startswith("pyarrow/") or file.startswith("<frozen")
    )
