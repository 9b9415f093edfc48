"""A topology as plain data and as YAML, and back: for plans stored in checkpoints and for `to_yaml`.

Only documents that Millstream wrote are read here. A user's file goes through `millstream.spec`, which records positions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from millstream.errors import Diagnostic, SpecError
from millstream.plan.components import Component, NamesInputs
from millstream.plan.declarations import UserFunction, udf_function, user_function
from millstream.plan.functions import FunctionRef
from millstream.plan.nodes import AnyNode, CommonOptions, WiredOptions, inputs_for, make_node
from millstream.plan.settings import Settings
from millstream.plan.topology import Topology
from millstream.registry import KINDS, Kind, Registry
from millstream.secrets import mask_option

COMMON = ("type", *WiredOptions.model_fields)


def to_yaml(topology: Topology) -> str:
    """The pipeline as a file."""
    unnamed = [_no_name(node, ref) for node in topology.nodes for ref in functions_of(node.component) if not ref.named]
    unnamed += [_function_without_name(used) for used in topology.functions if not used.options.function.named]
    if unnamed:
        raise SpecError(unnamed)
    return yaml.dump(to_document(topology), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


class _Dumper(yaml.SafeDumper):
    """Writes texts so that they are read back unchanged. Outside of double quotes, YAML reads Unicode line breaks as a new line, and
    YAML 1.2, which our reader follows, accepts more numbers (`0E0`) than this YAML 1.1 writer.
    """

    def represent_text(self, text: str) -> yaml.ScalarNode:
        quoted = _BREAKS & set(text) or _NUMBER.fullmatch(text)
        return self.represent_scalar("tag:yaml.org,2002:str", text, style='"' if quoted else None)


_BREAKS = frozenset("\x85\u2028\u2029")
_NUMBER = re.compile(r"[-+]?\.?\d[\d_.eE+-]*|0x[0-9a-fA-F]+")
_Dumper.add_representer(str, _Dumper.represent_text)


def to_document(topology: Topology) -> dict[str, Any]:
    document: dict[str, Any] = {"name": topology.name}
    for kind in KINDS:
        nodes = {node.name: node_document(node) for node in topology.nodes if node.kind == kind}
        if nodes:
            document[f"{kind}s"] = nodes
    if topology.functions:
        document["functions"] = {used.name: used.document() for used in topology.functions}
    if topology.side_outputs:
        document["side_outputs"] = {used.name: used.document() for used in topology.side_outputs}
    settings = topology.settings.model_dump(mode="json", exclude_defaults=True)
    if settings:
        document["settings"] = settings
    if topology.connections:
        document["connections"] = {connection.name: mask_option("", connection.options) for connection in topology.connections}
    return document


def node_document(node: AnyNode) -> dict[str, Any]:
    """One node as its YAML block."""
    document: dict[str, Any] = {"type": node.component.type}
    named = isinstance(node.component, NamesInputs) and node.component.tables()
    if node.inputs and not named:
        document["from"] = node.inputs[0] if len(node.inputs) == 1 else list(node.inputs)
    document |= node.component.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return document | node.options.model_dump(mode="json", exclude_defaults=True, exclude={"inputs"})


def from_yaml(text: str, directory: Path = Path()) -> Topology:
    """Read back what `to_yaml` wrote."""
    return from_document(yaml.safe_load(text), directory)


def from_document(document: Mapping[str, Any], directory: Path = Path(), known: Iterable[type[Component]] = ()) -> Topology:
    """`known` are classes that no package or file need have: a Python program has handed them over."""
    settings = Settings.model_validate(document.get("settings") or {})
    registry = Registry.installed().with_files(settings.plugins, directory).with_classes(known)
    nodes = [_node(registry, kind, name, dict(fields)) for kind in KINDS for name, fields in (document.get(f"{kind}s") or {}).items()]
    functions = tuple(_function(registry, name, value) for name, value in (document.get("functions") or {}).items())
    return Topology(document["name"], tuple(nodes), settings, functions=functions, directory=directory)


def _function(registry: Registry, name: str, value: Any) -> UserFunction:
    if not isinstance(value, Mapping) or "type" not in value:
        return user_function(name, value)
    model = registry.find("udf", value["type"])
    return udf_function(name, model.model_validate({k: v for k, v in value.items() if k != "type"}))  # type: ignore[union-attr]  # as for nodes


def functions_of(component: Component) -> list[FunctionRef]:
    return [value for value in component.__dict__.values() if isinstance(value, FunctionRef)]


def _node(registry: Registry, kind: Kind, name: str, fields: dict[str, Any]) -> AnyNode:
    component = registry.find(kind, fields["type"]).model_validate({k: v for k, v in fields.items() if k not in {*COMMON, "from"}})  # type: ignore[union-attr]  # stored plans name what existed
    common = {k: v for k, v in fields.items() if k in CommonOptions.model_fields}
    declared = fields.get("from", ())
    declared = (declared,) if isinstance(declared, str) else tuple(declared)
    return make_node(name, component, inputs_for(component, declared), CommonOptions.model_validate(common))


def _no_name(node: AnyNode, ref: FunctionRef) -> Diagnostic:
    place = f" ({ref.line})" if ref.line else ""
    message = f"`{node.name}` runs `{ref.reference}`{place}, which has no name by which it can be found again"
    return Diagnostic("MS034", message, node.span, help="define the function at the top level of a module")


def _function_without_name(used: UserFunction) -> Diagnostic:
    ref = used.options.function
    place = f" ({ref.line})" if ref.line else ""
    message = f"function `{used.name}` is `{ref.reference}`{place}, which has no name by which it can be found again"
    return Diagnostic("MS034", message, used.span, help="define the function at the top level of a module")
