"""Spark's failures in one screen: the node, its line in the pipeline, the cause, and the user's own Python frame.

Exceptions are looked through for what a person can act on. The JVM's trace stays in the log, and is shown with `--debug`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from millstream.engine.failures.functions import NODE_MARK, dead_worker, function_of_node, function_of_sql, refused_row
from millstream.engine.failures.sql import bad_row, rejected_plan
from millstream.engine.failures.systems import kafka, memory, storage, temporary
from millstream.engine.failures.texts import first_line, named_node, text_of
from millstream.errors import Diagnostic, MillstreamError, RunError, TransientError
from millstream.observe.remote_errors import received
from millstream.plan.nodes import Node
from millstream.secrets import Redactor

__all__ = ["text_of", "translate"]


def translate(error: BaseException, nodes: Sequence[Node], where: str, redact: Redactor, pipeline: str) -> RunError:
    """The failure as one diagnostic. `where` is the node that the engine was busy with."""
    if isinstance(error, MillstreamError):
        node = named_node(nodes, where)
        kind = type(error) if isinstance(error, RunError) else RunError
        return kind([_told(found, node, redact) for found in error.diagnostics])
    if carried := received(text_of(error)):  # before secrets are hidden: one may be a word of the mark
        named = NODE_MARK.search(text_of(error))
        return translate(carried[1], nodes, carried[0] or (named[1] if named else where), redact, pipeline)
    text = redact(text_of(error))
    for recognise in (
        refused_row,
        function_of_sql,
        function_of_node,
        dead_worker,
        memory,
        kafka,
        storage,
        bad_row,
        rejected_plan,
        temporary,
    ):
        found = recognise(text, nodes, where)
        if found is not None:
            kind = TransientError if found.code == "MS069" else RunError
            return kind(_named(found, pipeline))
    node = named_node(nodes, where)
    return RunError(
        _named(
            Diagnostic(
                "MS079",
                f"Spark stopped the query: {first_line(text)}",
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


def _named(finding: Diagnostic, pipeline: str) -> Diagnostic:
    detail = f"{finding.detail}\npipeline: {pipeline}" if finding.detail else f"pipeline: {pipeline}"
    return Diagnostic(finding.code, finding.message, finding.span, finding.level, detail, finding.help)
