"""What Kafka, files, disks and networks do to a query, recognised by what Spark says about them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from millstream.engine.failures.texts import CONDITION, first_line, named_node, sentence_of
from millstream.errors import Diagnostic
from millstream.plan.nodes import Node

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


def kafka(text: str, nodes: Sequence[Node], where: str) -> Diagnostic | None:
    """What Spark's connector says about messages and topics that are gone."""
    sources = [node for node in nodes if node.kind == "source" and node.component.type == "kafka"]
    name = f"`{sources[0].name}`" if len(sources) == 1 else "a Kafka source"
    span = sources[0].span if len(sources) == 1 else None
    if "KAFKA_DATA_LOSS" in text or "Some data may have been lost" in text:
        condition = CONDITION.search(text)
        reason = sentence_of(text, condition) if condition else first_line(text)
        help_ = "`on_data_loss: continue` goes on with what is left"
        return Diagnostic("MS093", f"messages that {name} has not read yet are gone", span, detail=reason, help=help_)
    refused = re.search(r"(?:Topic|Group|Cluster)AuthorizationException: ([^\n]+)", text)
    if refused:
        return Diagnostic("MS092", f"Kafka refuses access to {name}: {refused[1].lower()}", span, help="ask for the permission to read")
    if "UnknownTopicOrPartitionException" in text:
        return Diagnostic("MS091", f"a topic that {name} reads is gone", span, help="was it deleted while the pipeline ran?")
    return None


def storage(text: str, nodes: Sequence[Node], where: str) -> Diagnostic | None:
    node = named_node(nodes, where)
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
        return Diagnostic("MS068", f"{name} could not write: {first_line(text)}", span)
    if "PATH_NOT_FOUND" in text or "FileNotFoundException" in text:
        return Diagnostic("MS060", f"{name}: {first_line(text)}", span)
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


def temporary(text: str, nodes: Sequence[Node], where: str) -> Diagnostic | None:
    if not any(sign in text for sign in _TRANSIENT):
        return None
    node = named_node(nodes, where)
    return Diagnostic("MS069", f"`{where}` met a temporary failure: {first_line(text)}", node.span if node else None)
