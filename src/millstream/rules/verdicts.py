"""What Spark said about the transforms of a pipeline. `check --spark` stores it next to the pipeline's file. Later checks, which start no
JVM, repeat it for every transform whose options and input columns are the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

from millstream.clients.storage import LocalStorage
from millstream.errors import Diagnostic, Span
from millstream.plan.checkpoint_path import FOLDER
from millstream.plan.document import node_document
from millstream.plan.nodes import AnyNode, TransformNode
from millstream.plan.schemas import inputs_of, propagate
from millstream.plan.topology import Topology

UNREAD = "MS028"
"""The code of a query that only Spark understands."""


@dataclass(frozen=True, slots=True)
class Known:
    """The verdicts that still apply."""

    findings: tuple[Diagnostic, ...] = ()
    verified: frozenset[str] = frozenset()
    """The transforms that Spark has analysed."""


def store(topology: Topology, findings: Iterable[Diagnostic], analysed: Collection[str]) -> None:
    """Keep Spark's findings about the transforms that it has analysed. A transform whose input columns are known to Spark alone, or a
    pipeline with an error that belongs to no node, is not verified.
    """
    found = [finding for finding in findings if finding.code != UNREAD]
    loose = any(finding.level == "error" and finding.node not in topology.by_name for finding in found)
    wrong = {finding.node for finding in found}
    verdicts = {
        name: {"of": digest, "findings": [_stored(each, topology.node(name)) for each in found if each.node == name]}
        for name, digest in _digests(topology).items()
        if name in wrong or (name in analysed and not loose)
    }
    _folder(topology).put(_file(topology), json.dumps(verdicts, indent=1).encode())


def recall(topology: Topology) -> Known:
    """The verdicts on transforms that are the same."""
    text = _folder(topology).read(_file(topology))
    if text is None:
        return Known()
    stored: dict[str, Any] = json.loads(text)
    same = [name for name, digest in _digests(topology).items() if name in stored and stored[name]["of"] == digest]
    findings = [_restored(each, topology.node(name)) for name in same for each in stored[name]["findings"]]
    return Known(tuple(findings), frozenset(same))


def _digests(topology: Topology) -> dict[str, str]:
    """Transform → what Spark's verdict depends on: its options, the columns of its inputs, the functions, Spark's settings, and the
    versions of Spark and Millstream. A transform with an input whose columns are not known here has none.
    """
    schemas = propagate(topology)
    functions = [(used.document(), used.source_says(topology.directory)) for used in topology.functions]
    around = [version("pyspark"), version("millstream"), topology.settings.model_dump(mode="json").get("spark"), functions]
    found: dict[str, str] = {}
    for node in topology.ordered():
        inputs = inputs_of(node, schemas)
        if isinstance(node, TransformNode) and all(schema is not None for schema in inputs.values()):
            columns = {name: str(schema) for name, schema in inputs.items()}
            above = [found[name] for name in node.inputs if name in found]
            text = json.dumps([around, node_document(node), columns, above], sort_keys=True, default=str)
            found[node.name] = hashlib.sha256(text.encode()).hexdigest()
    return found


def _stored(finding: Diagnostic, node: AnyNode) -> dict[str, Any]:
    """A finding, with its line counted from the node, which may move in its file."""
    document = {name: getattr(finding, name) for name in ("code", "message", "level", "detail", "help", "cause")}
    if finding.span is None or node.span is None or finding.span.file != node.span.file:
        return document
    span = finding.span
    return {**document, "place": [span.line - node.span.line, span.column, span.end, span.text]}


def _restored(document: dict[str, Any], node: AnyNode) -> Diagnostic:
    place = document.pop("place", None)
    finding = Diagnostic(**document, span=node.span, node=node.name)
    if place is None or node.span is None:
        return finding
    line, column, end, text = place
    return replace(finding, span=Span(node.span.file, node.span.line + line, column, end, text))


def _folder(topology: Topology) -> LocalStorage:
    return LocalStorage(topology.directory / FOLDER)


def _file(topology: Topology) -> str:
    return f"{topology.name}.verdicts.json"
