"""What Kafka, files, disks and networks do to a query, recognised by what Spark says about them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from millstream.engine.deaths import MEMORY_HELP
from millstream.engine.failures.texts import CONDITION, first_line, named_node, sentence_of
from millstream.errors import Diagnostic, Span
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


def memory(text: str, nodes: Sequence[Node], where: str) -> Diagnostic | None:
    """The JVM lives on when only one task could not have what it asked for."""
    if "java.lang.OutOfMemoryError" not in text:
        return None
    node = named_node(nodes, where)
    return Diagnostic("MS155", "Spark's JVM ran out of memory", node.span if node else None, help=MEMORY_HELP)


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
    if "CSV header does not conform" in text or "Number of column in CSV header" in text:
        return _other_header(text, nodes)
    if "MALFORMED_RECORD_IN_PARSING" in text or "MALFORMED_CSV_RECORD" in text or "Malformed records are detected" in text:
        return _malformed(text, nodes)
    if found := _no_client(text, name, span):
        return found
    if "Permission denied" in text or "AccessControlException" in text:
        path = re.search(r"(/[^\s:'\"()]+)[^\n]*Permission denied", text)
        return Diagnostic("MS061", f"{name}: permission denied{f' on `{path[1]}`' if path else ''}", span)
    if re.search(
        r"Mkdirs failed|Not a directory|NotDirectoryException|ParentNotDirectoryException|FileAlreadyExistsException|Read-only file system",
        text,
    ) or (node is not None and node.kind == "sink" and "FileNotFoundError" in text):
        return Diagnostic("MS068", f"{name} could not write: {first_line(text)}", span)
    if "PATH_NOT_FOUND" in text or "FileNotFoundException" in text:
        return Diagnostic("MS060", f"{name}: {first_line(text)}", span)
    return None


_CLIENTS = {
    "s3a": "org.apache.hadoop:hadoop-aws:3.4.2",
    "abfss": "org.apache.hadoop:hadoop-azure:3.4.2",
    "gs": "com.google.cloud.bigdataoss:gcs-connector:VERSION",
}
_CLASSES = {"s3a": "S3AFileSystem", "gs": "GoogleHadoopFileSystem", "abfss": "SecureAzureBlobFileSystem"}


def _no_client(text: str, name: str, span: Span | None) -> Diagnostic | None:
    """An address that Hadoop has no classes for."""
    scheme = re.search(r"No FileSystem for scheme \"?(\w+)", text)
    lacking = next((each for each, word in _CLASSES.items() if re.search(rf"Class\S* \S*{word} not found", text)), "")
    if not scheme and not lacking:
        return None
    found = lacking or (scheme[1] if scheme else "")
    jar = _CLIENTS.get(found, "GROUP:ARTIFACT:VERSION")
    help_ = f"the jars are not part of Spark; add them: `settings: {{spark: {{spark.jars.packages: '{jar}'}}}}`"
    return Diagnostic("MS164", f"{name}: Spark has no classes for `{found}://` here", span, help=help_)


_READ_FILE = re.compile(r"(?:while reading file|CSV file:) (?:file:/*(?=/))?(\S+?)\.?(?:\s|$)")
_VALUE = re.compile(r"For input string: \"([^\"\n]{1,160})\"|Text '([^'\n]{1,160})' could not be parsed")


def _malformed(text: str, nodes: Sequence[Node]) -> Diagnostic:
    name, span = _file_source(nodes)
    file, value = _READ_FILE.search(text), _VALUE.search(text)
    record = re.search(r"(?:parsing|record): (.{1,160})", text)
    parts = [
        f"file: {file[1]}" if file else "",
        f"row, as far as it could be read: {record[1].removesuffix('.')}" if record else "",
        f"value: {value[1] or value[2]}" if value else "",
    ]
    help_ = "`on_error: drop` leaves such rows out, `on_error: {dead_letter: SINK}` keeps them"
    message = f"a row of {name} does not fit its format or schema"
    return Diagnostic("MS062", message, span, detail="\n".join(part for part in parts if part), help=help_)


def _other_header(text: str, nodes: Sequence[Node]) -> Diagnostic:
    """A CSV file that came later, with another header than the first one."""
    name, span = _file_source(nodes)
    file = _READ_FILE.search(text)
    found, expected = re.search(r"^ ?Header: (.+)$", text, re.MULTILINE), re.search(r"^ ?Schema: (.+)$", text, re.MULTILINE)
    counts = re.search(r"Header length: (\d+), schema size: (\d+)", text)
    parts = [
        f"file: {file[1]}" if file else "",
        f"found: {found[1]}" if found else f"found: {counts[1]} columns" if counts else "",
        f"expected: {expected[1]}" if expected else f"expected: {counts[2]} columns" if counts else "",
    ]
    help_ = "move the file away, or give it the header and the delimiter of the others"
    return Diagnostic("MS163", f"the CSV header does not fit {name}", span, detail="\n".join(part for part in parts if part), help=help_)


def _file_source(nodes: Sequence[Node]) -> tuple[str, Span | None]:
    """The one file source of a query, where there is one."""
    sources = [node for node in nodes if node.kind == "source" and node.component.type == "file"]
    return (f"`{sources[0].name}`", sources[0].span) if len(sources) == 1 else ("a file source", None)


def temporary(text: str, nodes: Sequence[Node], where: str) -> Diagnostic | None:
    if not any(sign in text for sign in _TRANSIENT):
        return None
    node = named_node(nodes, where)
    return Diagnostic("MS069", f"`{where}` met a temporary failure: {first_line(text)}", node.span if node else None)
