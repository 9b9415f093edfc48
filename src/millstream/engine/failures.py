"""Spark's failures in one screen: the node, its line in the pipeline, the cause, and the user's own Python frame.

Exceptions are looked through for what a person can act on. The JVM's trace stays in the log, and is shown with `--debug`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from millstream.engine.tracebacks import raised, user_frame
from millstream.errors import Diagnostic, MillstreamError, RunError, Span, TransientError
from millstream.observe.remote_errors import received
from millstream.plan.calls import mentions
from millstream.plan.nodes import Node
from millstream.plan.rules import text_place
from millstream.secrets import Redactor

NODE_MARK = re.compile(r"millstream-node: (\S+)")
SCHEMA_MARK = "millstream-schema:"
FUNCTION_MARK = re.compile(r"millstream-function: (\S+)")
RESULT_MARK = "millstream-result:"
KEY_MARK = re.compile(r"millstream-at-key: (.+)")
_KEYED_MARKS = {
    "millstream-timeout:": ("MS076", "correct the function, or raise `timeout`; the epoch is repeated, and no row is lost"),
    "millstream-state:": ("MS077", "declare the state as it was and add another, or `--reset QUERY` starts anew without state"),
}
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")
_SQL_PLACE = re.compile(r"== SQL(?: of [^(]*)?\(line (\d+), position (\d+)\) ==")
_ROW_CONDITIONS = {
    "DIVIDE_BY_ZERO",
    "REMAINDER_BY_ZERO",
    "INTERVAL_DIVIDED_BY_ZERO",
    "ARITHMETIC_OVERFLOW",
    "BINARY_ARITHMETIC_OVERFLOW",
}
_ROW_PREFIXES = (
    "CAST_",
    "INVALID_ARRAY_INDEX",
    "NUMERIC_VALUE_OUT_OF_RANGE",
    "CANNOT_PARSE_",
    "CANNOT_CHANGE_",
    "DATETIME_",
    "MAP_KEY",
    "INVALID_",
)
_MARKS = {"event-time": ("MS072", "event_time"), "key": ("MS073", "key_by"), "row": ("MS062", "schema")}
_MARK = re.compile(r"(?:\[USER_RAISED_EXCEPTION\] |Error: )millstream-(event-time|key|row|message): (\S+): (.*?)(?= SQLSTATE|\n|$)")
_TRANSIENT = (
    "ConnectException",
    "Connection refused",
    "Connection reset",
    "SocketTimeoutException",
    "UnknownHostException",
    "NoRouteToHost",
    "kafka.common.errors.TimeoutException",
    "kafka.common.errors.DisconnectException",
)


def translate(error: BaseException, nodes: Sequence[Node], where: str, redact: Redactor, pipeline: str) -> RunError:
    """The failure as one diagnostic. `where` is the node that the engine was busy with."""
    if isinstance(error, MillstreamError):
        node = _node(nodes, where)
        kind = type(error) if isinstance(error, RunError) else RunError
        return kind([_told(found, node, redact) for found in error.diagnostics])
    if carried := received(text_of(error)):  # before secrets are hidden: one may be a word of the mark
        named = NODE_MARK.search(text_of(error))
        return translate(carried[1], nodes, carried[0] or (named[1] if named else where), redact, pipeline)
    text = redact(text_of(error))
    for recognise in (_marked, _function, _python, _worker, _kafka, _storage, _row, _analysis, _transient):
        found = recognise(text, nodes, where)
        if found is not None:
            kind = TransientError if found.code == "MS069" else RunError
            return kind(_named(found, pipeline))
    node = _node(nodes, where)
    return RunError(
        _named(
            Diagnostic(
                "MS079",
                f"Spark stopped the query: {_first_line(text)}",
                node.span if node else None,
                help="`--debug` shows the whole trace",
            ),
            pipeline,
        )
    )


def _told(found: Diagnostic, node: Node | None, redact: Redactor) -> Diagnostic:
    """What a component raised itself: at its node, unless it knows better, and without secrets that others have put in."""
    span = found.span or (node.span if node else None)
    return replace(found, message=redact(found.message), detail=redact(found.detail), span=span)


def _marked(text: str, nodes: Sequence[Node], where: str) -> Diagnostic | None:
    """Rows that our own expressions refuse: the mark, the node, a sentence."""
    found = _MARK.search(text)
    if found is None:
        return None
    if found[1] == "message":
        help_ = "raise `max_message_size` and the topic's `max.message.bytes`; or `on_error: drop` or `{dead_letter: SINK}` for such rows"
        return Diagnostic("MS097", f"`{found[2]}`: {found[3].strip()}", _place(_node(nodes, found[2])), help=help_)
    code, option = _MARKS[found[1]]
    node, sentence = _node(nodes, found[2]), found[3].strip()
    if node is not None and node.options.event_time is not None and found[1] == "event-time":
        sentence = node.options.event_time.unusable(sentence)
    help_ = "`on_error: drop` leaves such rows out, `on_error: {dead_letter: SINK}` keeps them"
    return Diagnostic(code, f"`{found[2]}`: {sentence}", _place(node, option), help=help_)


def _python(text: str, nodes: Sequence[Node], where: str) -> Diagnostic | None:
    mark = NODE_MARK.search(text)
    if mark is None:
        return None
    node = _node(nodes, mark[1])
    reason, key = raised(text, mark.start()), KEY_MARK.search(text)
    if SCHEMA_MARK in text:
        sentence = text.split(SCHEMA_MARK, 1)[1].strip().splitlines()[0]
        return Diagnostic(
            "MS064",
            f"`{mark[1]}`: {sentence}",
            _place(node, "function"),
            detail=f"key: {key[1]}" if key else "",
            help=f"return what is declared, or correct `{'output' if node and node.component.type == 'process' else 'schema'}`",
        )
    for known, (code, help_) in _KEYED_MARKS.items():
        if known in text:
            sentence = text.split(known, 1)[1].strip().splitlines()[0]
            return Diagnostic(code, f"`{mark[1]}`: {sentence}", _place(node, "function"), detail=user_frame(text), help=help_)
    return Diagnostic(
        "MS063",
        f"the function of `{mark[1]}` raised {reason}",
        _place(node, "function"),
        detail="\n".join(part for part in (f"key: {key[1]}" if key else "", user_frame(text)) if part),
        help="`on_error: drop` or `{dead_letter: SINK}` lets the good rows pass",
    )


def _function(text: str, nodes: Sequence[Node], where: str) -> Diagnostic | None:
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


def _worker(text: str, nodes: Sequence[Node], where: str) -> Diagnostic | None:
    if "Python worker exited unexpectedly" not in text and "Python worker failed to connect" not in text:
        return None
    python = [node for node in nodes if node.component.type in {"python", "process"}]
    name = f" of `{python[0].name}`" if len(python) == 1 else ""
    place = _place(python[0], "function") if len(python) == 1 else None
    return Diagnostic(
        "MS065",
        f"the Python worker{name} died in the middle of a batch",
        place,
        help="was it killed for its memory? a smaller `batch_size` needs less",
    )


def _kafka(text: str, nodes: Sequence[Node], where: str) -> Diagnostic | None:
    """What Spark's connector says about messages and topics that are gone."""
    sources = [node for node in nodes if node.kind == "source" and node.component.type == "kafka"]
    name = f"`{sources[0].name}`" if len(sources) == 1 else "a Kafka source"
    span = sources[0].span if len(sources) == 1 else None
    if "KAFKA_DATA_LOSS" in text or "Some data may have been lost" in text:
        condition = _CONDITION.search(text)
        reason = _sentence(text, condition) if condition else _first_line(text)
        help_ = "`on_data_loss: continue` goes on with what is left"
        return Diagnostic("MS093", f"messages that {name} has not read yet are gone", span, detail=reason, help=help_)
    refused = re.search(r"(?:Topic|Group|Cluster)AuthorizationException: ([^\n]+)", text)
    if refused:
        return Diagnostic("MS092", f"Kafka refuses access to {name}: {refused[1].lower()}", span, help="ask for the permission to read")
    if "UnknownTopicOrPartitionException" in text:
        return Diagnostic("MS091", f"a topic that {name} reads is gone", span, help="was it deleted while the pipeline ran?")
    return None


def _storage(text: str, nodes: Sequence[Node], where: str) -> Diagnostic | None:
    node = _node(nodes, where)
    span, name = (node.span, f"`{where}`") if node else (None, "the pipeline")
    if "No space left on device" in text or "Disk quota exceeded" in text:
        return Diagnostic(
            "MS068",
            f"{name} could not write: the disk is full",
            span,
            help="make room and run again; the epoch is repeated, and nothing half-written is visible",
        )
    if "MALFORMED_RECORD_IN_PARSING" in text or "MALFORMED_CSV_RECORD" in text or "Malformed records are detected" in text:
        return _malformed(text, nodes)
    if "Permission denied" in text or "AccessControlException" in text:
        path = re.search(r"(/[^\s:'\"()]+)[^\n]*Permission denied", text)
        return Diagnostic("MS061", f"{name}: permission denied{f' on `{path[1]}`' if path else ''}", span)
    if re.search(
        r"Mkdirs failed|Not a directory|NotDirectoryException|ParentNotDirectoryException|FileAlreadyExistsException|Read-only file system",
        text,
    ):
        return Diagnostic("MS068", f"{name} could not write: {_first_line(text)}", span)
    if "PATH_NOT_FOUND" in text or "FileNotFoundException" in text:
        return Diagnostic("MS060", f"{name}: {_first_line(text)}", span)
    return None


def _malformed(text: str, nodes: Sequence[Node]) -> Diagnostic:
    sources = [node for node in nodes if node.kind == "source" and node.component.type == "file"]
    file = re.search(r"(?:file:)?(/[^\s\"']+\.[A-Za-z0-9]+)", text)
    record = re.search(r"(?:parsing|record): (.{1,160})", text)
    name = f"`{sources[0].name}`" if len(sources) == 1 else "a file source"
    detail = "\n".join(part for part in [f"file: {file[1]}" if file else "", f"row: {record[1]}" if record else ""] if part)
    help_ = "`on_error: drop` leaves such rows out, `on_error: {dead_letter: SINK}` keeps them"
    return Diagnostic(
        "MS062",
        f"a row of {name} does not fit its format or schema",
        sources[0].span if len(sources) == 1 else None,
        detail=detail,
        help=help_,
    )


def _row(text: str, nodes: Sequence[Node], where: str) -> Diagnostic | None:
    condition = _CONDITION.search(text)
    if condition is None or not (condition[1].split(".")[0] in _ROW_CONDITIONS or condition[1].startswith(_ROW_PREFIXES)):
        return None
    node, place = _sql_place(text, nodes)
    name = f"`{node.name}`" if node else f"a node above `{where}`"
    help_ = "the `try_` form of the function gives null instead; or `on_error: drop` or `{dead_letter: SINK}`"
    return Diagnostic("MS067", f"{name} failed on a row: {_sentence(text, condition)}", place, help=help_)


def _analysis(text: str, nodes: Sequence[Node], where: str) -> Diagnostic | None:
    condition = _CONDITION.search(text)
    if condition is None or ("AnalysisException" not in text and "ParseException" not in text):
        return None
    node, place = _sql_place(text, nodes)
    node = node or _node(nodes, where)
    name = f"`{node.name}`" if node else "the plan"
    return Diagnostic("MS066", f"Spark rejects {name}: {_sentence(text, condition)}", place or (node.span if node else None))


def _transient(text: str, nodes: Sequence[Node], where: str) -> Diagnostic | None:
    if not any(sign in text for sign in _TRANSIENT):
        return None
    node = _node(nodes, where)
    return Diagnostic("MS069", f"`{where}` met a temporary failure: {_first_line(text)}", node.span if node else None)


def _sql_place(text: str, nodes: Sequence[Node]) -> tuple[Node | None, Span | None]:
    """The query that Spark's own marks lead to: the fragment it quotes stands in one node's SQL."""
    quoted = re.search(r"== SQL[^\n]*==\n(.*?)\n\s*\^+", text, re.S)
    queries = [node for node in nodes if hasattr(node.component, "sql")]
    fragment = quoted[1].strip() if quoted else ""
    carets = re.search(r"== SQL[^\n]*==\n[^\n]*\n(\s*)(\^+)", text)
    word = quoted[1].splitlines()[0][len(carets[1]) : len(carets[1]) + len(carets[2])].strip() if quoted and carets else fragment
    for node in queries:
        sql: str = node.component.sql  # type: ignore[attr-defined]  # selected by hasattr above
        if word and word in sql:
            before = sql[: sql.index(word)]
            return node, text_place(
                node, "sql", before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1, len(word.splitlines()[0])
            )
    return (queries[0], queries[0].place("sql")) if len(queries) == 1 else (None, None)


def text_of(error: BaseException) -> str:
    """Everything that the exception and its causes say."""
    parts = [f"{type(error).__name__}: {error}"]
    java = getattr(error, "java_exception", None)
    if java is not None:
        parts.append(str(java.toString()))
        cause = java.getCause()
        for _ in range(8):
            if cause is None:
                break
            parts.append(str(cause.toString()))
            cause = cause.getCause()
    if error.__cause__ is not None:
        parts.append(text_of(error.__cause__))
    return "\n".join(parts)


def _sentence(text: str, condition: re.Match[str]) -> str:
    rest = text[condition.end() :].strip()
    sentence = re.split(r"\s*(?:SQLSTATE|== SQL|\n|\. (?=[A-Z]))", rest)[0].strip().rstrip(".")
    return sentence[:1].lower() + sentence[1:]


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:300] if lines else "no message"


def _node(nodes: Sequence[Node], name: str) -> Node | None:
    return next((node for node in nodes if node.name == name), None)


def _place(node: Node | None, *path: str) -> Span | None:
    return node.place(*path) if node else None


def _named(finding: Diagnostic, pipeline: str) -> Diagnostic:
    detail = f"{finding.detail}\npipeline: {pipeline}" if finding.detail else f"pipeline: {pipeline}"
    return Diagnostic(finding.code, finding.message, finding.span, finding.level, detail, finding.help)
