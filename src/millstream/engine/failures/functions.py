"""Failures in the user's own Python, and rows that our own expressions refuse: marks in the text say which node and which key."""

from __future__ import annotations

import re
from collections.abc import Sequence

from millstream.engine.failures.texts import named_node, place_in
from millstream.engine.tracebacks import raised, user_frame
from millstream.errors import Diagnostic
from millstream.plan.calls import mentions
from millstream.plan.nodes import Node

NODE_MARK = re.compile(r"millstream-node: (\S+)")
SCHEMA_MARK = "millstream-schema:"
FUNCTION_MARK = re.compile(r"millstream-function: (\S+)")
RESULT_MARK = "millstream-result:"
KEY_MARK = re.compile(r"millstream-at-key: (.+)")
_KEYED_MARKS = {
    "millstream-timeout:": ("MS076", "correct the function, or raise `timeout`; the epoch is repeated, and no row is lost"),
    "millstream-state:": ("MS077", "declare the state as it was and add another, or `--reset QUERY` starts anew without state"),
}
_MARKS = {
    "event-time": ("MS072", "event_time"),
    "key": ("MS073", "key_by"),
    "row": ("MS062", "schema"),
    "partition": ("MS166", "partition_by"),
}
_KINDS = "|".join((*_MARKS, "message"))
_MARK = re.compile(rf"(?:\[USER_RAISED_EXCEPTION\] |Error: )millstream-({_KINDS}): (\S+): (.*?)(?= SQLSTATE|\n|$)")


def refused_row(text: str, nodes: Sequence[Node], where: str) -> Diagnostic | None:
    """Rows that our own expressions refuse: the mark, the node, a sentence."""
    found = _MARK.search(text)
    if found is None:
        return None
    if found[1] == "message":
        help_ = "raise `max_message_size` and the topic's `max.message.bytes`; or `on_error: drop` or `{dead_letter: SINK}` for such rows"
        return Diagnostic("MS097", f"`{found[2]}`: {found[3].strip()}", place_in(named_node(nodes, found[2])), help=help_)
    code, option = _MARKS[found[1]]
    node, sentence = named_node(nodes, found[2]), found[3].strip()
    if node is not None and node.options.event_time is not None and found[1] == "event-time":
        sentence = node.options.event_time.unusable(sentence)
    help_ = "`on_error: drop` leaves such rows out, `on_error: {dead_letter: SINK}` keeps them"
    return Diagnostic(code, f"`{found[2]}`: {sentence}", place_in(node, option), help=help_)


def function_of_sql(text: str, nodes: Sequence[Node], where: str) -> Diagnostic | None:
    """A function that SQL called."""
    mark = FUNCTION_MARK.search(text)
    if mark is None:
        return None
    callers = [node for node in nodes if node.kind == "transform" and mentions(node.component.model_dump_json(), [mark[1]])]
    named = f"function `{mark[1]}`" + (f", called by {', '.join(f'`{node.name}`' for node in callers)}," if callers else "")
    place = callers[0].place("sql") if callers else None
    if RESULT_MARK in text:
        sentence = text.split(RESULT_MARK, 1)[1].strip().splitlines()[0]
        help_ = "return one value per row, of the declared type, or correct `returns`"
        return Diagnostic("MS064", f"{named} returned something else than declared: {sentence}", place, help=help_)
    help_ = "correct the function, or let it return null for what it cannot handle"
    return Diagnostic("MS063", f"{named} raised {raised(text, mark.start())}", place, detail=user_frame(text), help=help_)


def function_of_node(text: str, nodes: Sequence[Node], where: str) -> Diagnostic | None:
    mark = NODE_MARK.search(text)
    if mark is None:
        return None
    node = named_node(nodes, mark[1])
    reason, key = raised(text, mark.start()), KEY_MARK.search(text)
    if SCHEMA_MARK in text:
        sentence = text.split(SCHEMA_MARK, 1)[1].strip().splitlines()[0]
        return Diagnostic(
            "MS064",
            f"`{mark[1]}`: {sentence}",
            place_in(node, "function"),
            detail=f"key: {key[1]}" if key else "",
            help=f"return what is declared, or correct `{'output' if node and node.component.type == 'process' else 'schema'}`",
        )
    for known, (code, help_) in _KEYED_MARKS.items():
        if known in text:
            sentence = text.split(known, 1)[1].strip().splitlines()[0]
            return Diagnostic(code, f"`{mark[1]}`: {sentence}", place_in(node, "function"), detail=user_frame(text), help=help_)
    return Diagnostic(
        "MS063",
        f"the function of `{mark[1]}` raised {reason}",
        place_in(node, "function"),
        detail="\n".join(part for part in (f"key: {key[1]}" if key else "", user_frame(text)) if part),
        help="`on_error: drop` or `{dead_letter: SINK}` lets the good rows pass",
    )


def dead_worker(text: str, nodes: Sequence[Node], where: str) -> Diagnostic | None:
    if "Python worker exited unexpectedly" not in text and "Python worker failed to connect" not in text:
        return None
    python = [node for node in nodes if node.component.type in {"python", "process"}]
    name = f" of `{python[0].name}`" if len(python) == 1 else ""
    place = place_in(python[0], "function") if len(python) == 1 else None
    return Diagnostic(
        "MS065",
        f"the Python worker{name} died in the middle of a batch",
        place,
        help="was it killed for its memory? a smaller `batch_size` needs less",
    )
