"""Failures of scripts: the worker says what happened in a mark, with the place in the user's text."""

from __future__ import annotations

import json

from millstream.engine.failures.scene import Scene
from millstream.errors import Diagnostic
from millstream.plan.nodes import AnyNode
from millstream.worker import marks

_ON_ERROR = "`on_error: drop` leaves such rows out, `on_error: {dead_letter: SINK}` keeps them"
_HELP = {
    "MS192": "correct the script",
    "MS193": f"correct the script; if rows are at fault, {_ON_ERROR}",
    "MS194": f"return what `schema` declares, or correct it; {_ON_ERROR}",
    "MS195": f"correct the script, or raise `timeout` or `memory`; {_ON_ERROR}",
    "MS196": "install it on Spark's workers: pip install 'millstream[script]', or 'millstream[deno]' for `engine: deno`",
}


def failed_script(text: str, scene: Scene) -> Diagnostic | None:
    """A row for which a script has no result, or a script that cannot start."""
    mark, named = marks.find(marks.SCRIPT, text), marks.find(marks.NODE, text)
    if mark is None or named is None:
        return None
    try:
        said, _ = json.JSONDecoder().raw_decode(mark[1])
    except ValueError:
        return None
    name = named[1].split()[0]
    node = scene.node(name)
    place = node.text_place("script", line=said["line"], column=said["column"] or _indent(node, said["line"])) if node else None
    row = f"row {said['number']} of its task: {said['row']}" if said["row"] else ""
    detail = "\n".join(part for part in (*said["stack"], row) if part)
    return Diagnostic(said["code"], f"the script of `{name}`: {said['message']}", place, detail=detail, help=_HELP[said["code"]], node=name)


def _indent(node: AnyNode, line: int) -> int:
    """The column at which a line of the script begins."""
    lines = str(getattr(node.component, "script", "")).splitlines()
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    return len(text) - len(text.lstrip()) + 1
