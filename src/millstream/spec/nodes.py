"""Builds a node from a YAML block: the type selects the class, the class has its options, the rest is common to all nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError

from millstream.errors import Diagnostic, MillstreamError, Span, nearest
from millstream.plan.branches import DEFAULT
from millstream.plan.components import Component
from millstream.plan.declarations import FunctionOptions, UserFunction, udf_function
from millstream.plan.nodes import AnyNode, CommonOptions, WiredOptions, inputs_for, make_node
from millstream.plan.side_outputs import SideOutputNode
from millstream.registry import Kind, PluginKind, Registry
from millstream.secrets import SCHEME
from millstream.spec.layers import overlay
from millstream.spec.problems import diagnose, field_names
from millstream.spec.repair import Model, Repaired, repair
from millstream.spec.text_files import TextFiles
from millstream.spec.tree import Items, Map, Scalar, Tree, locate, plain


class NodeBuilder:
    """Builds the nodes of a file. Mistakes are reported; a node with mistakes is built without them if possible (`repaired_names`,
    `unclear_names` when its columns are uncertain), and is in `broken_names` otherwise.
    """

    def __init__(self, registry: Registry, problems: list[Diagnostic], connections: Mapping[str, Map], files: TextFiles) -> None:
        self.registry, self.problems, self.connections, self.files = registry, problems, connections, files
        self.broken_names: set[str] = set()
        self.broken_inputs: list[tuple[str, Scalar]] = []
        """The inputs of nodes that could not be built, from their `from`."""
        self.repaired_names: set[str] = set()
        self.unclear_names: set[str] = set()
        self.broken_functions: set[str] = set()

    def section(self, kind: Kind, tree: Tree | None) -> Iterator[AnyNode]:
        if tree is None or (isinstance(tree, Scalar) and tree.value is None):
            return
        if not isinstance(tree, Map):
            self.problems.append(Diagnostic("MS008", f"`{kind}s` must be a map of named nodes", tree.span))
            return
        for name, block in tree.entries.items():
            node = self._node(kind, name, block, tree.keys[name])
            if node is None:
                self.broken_names.add(name)
                self.broken_inputs += [(f"{kind} `{name}`", each) for each in _inputs(block)]
            else:
                yield node
            if node is None or name in self.repaired_names:
                self.broken_names |= _branches(name, block)

    def functions(self, tree: Tree | None) -> Iterator[UserFunction]:
        """The functions that SQL can call: each a reference, or a map with options."""
        if tree is None or (isinstance(tree, Scalar) and tree.value is None):
            return
        if not isinstance(tree, Map):
            self.problems.append(Diagnostic("MS008", "`functions` must be a map of named functions", tree.span))
            return
        for name, block in tree.entries.items():
            if isinstance(block, Map) and "type" in block.entries:
                component = self._plugin("udf", f"function `{name}`", block, tree.keys[name])
                if component is None:
                    self.broken_functions.add(name)
                else:
                    yield udf_function(name, component, tree.keys[name])
                continue
            full = block if isinstance(block, Map) else Map({"function": block}, {"function": tree.keys[name]}, block.span)
            found = self._validate(FunctionOptions, plain(full), full, f"function `{name}`", [FunctionOptions], tree.keys[name])
            if found is None or found.left_out:
                self.broken_functions.add(name)
            else:
                yield UserFunction(name, found.options, tree.keys[name])

    def side_outputs(self, tree: Tree | None) -> Iterator[SideOutputNode]:
        """What sees the rows of sources, by name."""
        if tree is None or (isinstance(tree, Scalar) and tree.value is None):
            return
        if not isinstance(tree, Map):
            self.problems.append(Diagnostic("MS008", "`side_outputs` must be a map of named side outputs", tree.span))
            return
        for name, block in tree.entries.items():
            if not isinstance(block, Map):
                self.problems.append(Diagnostic("MS008", f"side output `{name}` must be a map with a `type`", block.span))
                continue
            given = block.entries.get("from")
            names = [each for each in (given.items if isinstance(given, Items) else (given,)) if isinstance(each, Scalar)]
            rest = {key: child for key, child in block.entries.items() if key != "from"}
            component = self._plugin("side_output", f"side output `{name}`", replace(block, entries=rest), tree.keys[name])
            if component is not None:
                spans = {str(each.value): each.span for each in names}
                yield SideOutputNode(name, component, tuple(spans), tree.keys[name], spans)

    def _plugin(self, kind: PluginKind, what: str, block: Map, span: Span) -> Any | None:
        """A plugin that is no node, with its options."""
        model = self._class(kind, what, block, span)
        if model is None:
            return None
        values = {name: value for name, value in plain(block).items() if name != "type"}
        try:
            return model.model_validate(values)
        except ValidationError as error:
            self.problems += [_at_node_name(finding, span) for finding in diagnose(error, block, what, [model])]
            return None

    def _node(self, kind: Kind, name: str, block: Tree, span: Span) -> AnyNode | None:
        what = f"{kind} `{name}`"
        if not isinstance(block, Map):
            self.problems.append(Diagnostic("MS008", f"{what} must be a map with a `type`", block.span))
            return None
        block = block if "type" in block.entries else self._with_type(block, what)
        model = self._class(kind, what, block, span)
        if model is None:
            return None
        with_texts = self.files.fill_in(model, self._with_connection(model, block), what)
        if with_texts is None:
            return None
        block = with_texts
        common: type[CommonOptions] = CommonOptions if kind == "source" else WiredOptions
        own, shared = self._validate_both(model, common, block, what, span)
        if own is None or shared is None:
            return None
        component, options = own.options, shared.options
        self._note(name, component, own.left_out, shared.left_out)
        self._refuse_plain_secrets(component, block, what)
        self._check_connection(model, options, block, what)
        declared = options.inputs if isinstance(options, WiredOptions) else ()
        rest = CommonOptions.model_validate(options.model_dump(exclude={"inputs"}))
        return make_node(name, component, inputs_for(component, declared), rest, span, spans_of(block))

    def _note(self, name: str, component: Component, own: frozenset[str], shared: frozenset[str]) -> None:
        if own or shared:
            self.repaired_names.add(name)
        shaping = own if component.shaped_by is None else own & component.shaped_by
        if shaping or "event_time" in shared:
            self.unclear_names.add(name)

    def _with_connection(self, model: type[Component], block: Map) -> Map:
        """The node's options merged over those of its connection, each with its own position. The default connection has the name of the
        type.
        """
        named = plain(block.entries["connection"]) if "connection" in block.entries else model.default_connection(plain(block))
        below = self.connections.get(str(named)) if model.connects else None
        merged = overlay(below, block)
        return replace(merged, span=block.span) if isinstance(merged, Map) else block

    def _class(self, kind: PluginKind, what: str, block: Map, span: Span) -> Any | None:
        if "type" not in block.entries:
            self.problems.append(Diagnostic("MS007", f"{what} needs a `type`", span, help=nearest("", self.registry.types(kind))))
            return None
        type_name = str(plain(block.entries["type"]))
        try:
            model = self.registry.find(kind, type_name)
        except MillstreamError as error:
            place = block.entries["type"].span
            self.problems += [replace(found, span=place, detail=_with_place(found)) for found in error.diagnostics]
            return None
        if model is None:
            help_ = nearest(type_name, self.registry.types(kind))
            self.problems.append(
                Diagnostic("MS010", f"unknown {kind.replace('_', ' ')} type `{type_name}`", block.entries["type"].span, help=help_)
            )
        return model

    def _with_type(self, block: Map, what: str) -> Map:
        """The block with a misspelled `type` key corrected."""
        meant = next(iter(get_close_matches("type", block.entries, n=1, cutoff=0.7)), "type")
        if meant == "type":
            return block
        self.problems.append(Diagnostic("MS006", f"unknown field `{meant}` in {what}", block.keys[meant], help="did you mean `type`?"))
        renamed = {"type" if name == meant else name: child for name, child in block.entries.items()}
        return replace(block, entries=renamed, keys={"type" if name == meant else name: key for name, key in block.keys.items()})

    def _validate_both(
        self, model: type[Component], common: type[CommonOptions], block: Map, what: str, span: Span
    ) -> tuple[Repaired[Component] | None, Repaired[CommonOptions] | None]:
        values = {name: value for name, value in plain(block).items() if name != "type"}
        names = {*field_names(common), "connection"}
        own = {name: value for name, value in values.items() if name not in names}
        shared = {name: value for name, value in values.items() if name in names}
        models: list[type[BaseModel]] = [model, common]
        component = self._validate(model, own, block, what, models, span)
        return component, self._validate(common, shared, block, what, models, span)

    def _validate(
        self, model: type[Model], values: dict[str, Any], block: Map, what: str, models: list[type[BaseModel]], span: Span
    ) -> Repaired[Model] | None:
        try:
            return Repaired(model.model_validate(values))
        except ValidationError as error:
            found = diagnose(error, block, what, models)
            self.problems += [_at_node_name(finding, span) for finding in found]
            return repair(model, values, error, models)

    def _refuse_plain_secrets(self, component: Component, block: Map, what: str) -> None:
        for name, value in component.__dict__.items():
            if isinstance(value, str) and value.startswith(SCHEME):
                self.problems.append(Diagnostic("MS013", f"`{name}` in {what} does not take a secret", locate(block, (name,))))

    def _check_connection(self, model: type[Component], options: CommonOptions, block: Map, what: str) -> None:
        name = options.connection
        if name and not model.connects:
            self.problems.append(Diagnostic("MS006", f"{what} takes no connection", locate(block, ("connection",), key=True)))
        elif name and name not in self.connections:
            self.problems.append(
                Diagnostic("MS014", f"unknown connection `{name}`", locate(block, ("connection",)), help=nearest(name, self.connections))
            )


def spans_of(block: Map) -> dict[tuple[str, ...], Span]:
    """Path of a field → its position; for texts also every line, for `from` also every name."""
    spans: dict[tuple[str, ...], Span] = {}

    def visit(tree: Tree, path: tuple[str, ...]) -> None:
        if path:
            spans[path] = tree.span
        if isinstance(tree, Map):
            for name, child in tree.entries.items():
                visit(child, (*path, name))
        elif isinstance(tree, Items):
            for index, child in enumerate(tree.items):
                visit(child, (*path, str(plain(child)) if isinstance(child, Scalar) else str(index)))
        else:
            spans.update({(*path, str(index + 1)): line for index, line in enumerate(tree.lines)})

    visit(block, ())
    return spans


def _at_node_name(finding: Diagnostic, span: Span) -> Diagnostic:
    """A missing option is reported at the node's name."""
    return (
        Diagnostic(finding.code, finding.message, span, finding.level, finding.detail, finding.help) if finding.code == "MS007" else finding
    )


def _with_place(found: Diagnostic) -> str:
    """The detail of a plugin's mistake, with its place in the plugin: the finding is shown where the pipeline names the plugin."""
    if found.span is None:
        return found.detail
    return f"{found.span.file}:{found.span.line}:{found.span.column}: {found.span.text.strip()}"


def _inputs(block: Tree) -> list[Scalar]:
    """The inputs in a block's `from`."""
    given = block.entries.get("from") if isinstance(block, Map) else None
    return [each for each in (given.items if isinstance(given, Items) else [given]) if isinstance(each, Scalar)]


def _branches(name: str, block: Tree) -> set[str]:
    """The branches that a block with a mistake would have as a route."""
    routes = block.entries.get("routes") if isinstance(block, Map) else None
    return {f"{name}.{branch}" for branch in (*routes.entries, DEFAULT)} if isinstance(routes, Map) else set()
