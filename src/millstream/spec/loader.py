"""Loads a file as a plan: read, replace variables, build every node, check, and report all mistakes at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from millstream.errors import Diagnostic, MillstreamError, SpecError, nearest
from millstream.plan.branches import with_branches
from millstream.plan.components import Transform
from millstream.plan.pipeline_tests import Case, CaseOptions
from millstream.plan.settings import Settings
from millstream.plan.topology import Connection, Topology
from millstream.registry import KINDS, Registry
from millstream.rules import check
from millstream.spec.echoes import without_echoes, without_unset
from millstream.spec.includes import INCLUDE, Includes
from millstream.spec.layers import from_environment, from_flags, origin, overlay, read_config, read_text
from millstream.spec.nodes import NodeBuilder
from millstream.spec.plugins import PluginLoading, Prepared
from millstream.spec.problems import diagnose, unknown_field
from millstream.spec.text_files import TextFiles
from millstream.spec.tree import Items, Map, Tree, TreeReader, plain
from millstream.spec.variables import interpolate

SECTIONS = (
    "name",
    "description",
    INCLUDE,
    "sources",
    "transforms",
    "sinks",
    "functions",
    "side_outputs",
    "settings",
    "connections",
    "tests",
)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The plan, if there is one, and every finding."""

    topology: Topology | None
    diagnostics: tuple[Diagnostic, ...]

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(finding for finding in self.diagnostics if finding.level == "error")

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        return tuple(finding for finding in self.diagnostics if finding.level == "warning")

    def require(self) -> Topology:
        """The plan, or all the errors as one exception."""
        if self.topology is None or self.errors:
            raise SpecError(self.errors)
        return self.topology


def load(
    path: str | Path,
    *,
    environ: Mapping[str, str],
    config: Path | None = None,
    flags: Mapping[str, str] | None = None,
) -> Loaded:
    """Load a pipeline file and check it. Never raises for mistakes in the file."""
    try:
        return _Loader(Path(path), environ, config, flags or {}).load(read_text(Path(path)))
    except MillstreamError as error:
        return Loaded(None, error.diagnostics)


def loads(text: str, *, environ: Mapping[str, str] | None = None, file: str = "pipeline.yaml") -> Loaded:
    """The same for text."""
    try:
        return _Loader(Path(file), environ or {}, None, {}).load(text)
    except MillstreamError as error:
        return Loaded(None, error.diagnostics)


class _Loader:
    def __init__(self, path: Path, environ: Mapping[str, str], config: Path | None, flags: Mapping[str, str]) -> None:
        self.path, self.environ, self.flags = path, environ, flags
        self.problems: list[Diagnostic] = []
        self.config = read_config(path, config, environ, self.problems)
        self.plugins = PluginLoading(path, self.config, environ, flags, self.problems)
        self.registry = Registry()
        self.shown = str(path)
        self.includes = Includes(path, environ, self.problems)

    def load(self, text: str) -> Loaded:
        self.registry, prepared = self.plugins.prepare(text)
        self.shown = prepared.file
        root = self._root(prepared)
        name = str(plain(root.entries["name"])) if "name" in root.entries else self.path.stem
        trees = self._connections(root)
        connections = tuple(Connection(each, plain(tree), self._origins(tree)) for each, tree in trees.items())
        builder = NodeBuilder(self.registry, self.problems, trees, TextFiles(self.path.parent, self.environ, self.problems))
        written = [node for kind in KINDS for node in builder.section(kind, root.entries.get(f"{kind}s"))]
        nodes = with_branches(written, self._branch)
        settings, origins = self._settings(root)
        tests = tuple(self._tests(root.entries.get("tests")))
        functions = tuple(builder.functions(root.entries.get("functions")))
        watching = tuple(builder.side_outputs(root.entries.get("side_outputs")))
        directory = self.path.parent.absolute()
        topology = Topology(
            name, tuple(nodes), settings, connections, tests, directory, origins, functions=functions, side_outputs=watching
        )
        checked = check(topology, dict.fromkeys(builder.unclear_names))
        findings = [*self._unknown_inputs(builder, topology), *without_echoes(checked, topology, builder, self.problems)]
        findings = [_at_name(finding, root) for finding in findings]
        return Loaded(topology, tuple(dict.fromkeys(without_unset([*self.problems, *findings]))))

    def _branch(self, name: str) -> Transform:
        branch: Transform = self.registry.find("transform", "branch")(branch=name)  # type: ignore[misc]  # a class
        return branch

    def _unknown_inputs(self, builder: NodeBuilder, topology: Topology) -> Iterator[Diagnostic]:
        """Unknown inputs of nodes with a mistake: the rules see only nodes that could be built."""
        known = {*topology.by_name, *builder.broken_names}
        for what, name in builder.broken_inputs:
            if str(name.value) not in known:
                yield Diagnostic("MS012", f"unknown input `{name.value}` of {what}", name.span, help=nearest(str(name.value), known))

    def _root(self, prepared: Prepared) -> Map:
        reader = TreeReader(prepared.file, prepared.text)
        try:
            tree = reader.read()
        except MillstreamError as error:
            raise prepared.diagnose(error) from None
        self.problems += reader.problems
        if tree is None:
            help_ = "`millstream init` writes a pipeline to start from"
            raise SpecError(Diagnostic("MS005", f"`{self.path}` is empty", help=help_))
        if not isinstance(tree, Map):
            raise SpecError(Diagnostic("MS005", f"`{self.path}` is not a map with `sources` and `sinks`", tree.span))
        for name, span in tree.keys.items():
            if name not in SECTIONS and not name.startswith("x-"):
                self.problems.append(unknown_field(name, "the pipeline", span, SECTIONS))
        filled = interpolate(tree, self.environ, self.problems)
        assert isinstance(filled, Map)
        return self.includes.merge(filled, self.path)

    def _settings(self, root: Map) -> tuple[Settings, dict[str, str]]:
        config = self.config.entries.get("settings") if self.config else None
        tree = overlay(root.entries.get("settings"), config)
        tree = overlay(tree, from_environment("settings", None, self.environ))
        tree = overlay(tree, from_flags(self.flags))
        if tree is None or (not isinstance(tree, Map) and plain(tree) is None):
            return Settings(), {}
        try:
            return Settings.model_validate(plain(tree)), self._origins(tree)
        except ValidationError as error:
            self.problems += diagnose(error, tree, "settings", [Settings])
            return Settings(), {}

    def _connections(self, root: Map) -> dict[str, Map]:
        config = self.config.entries.get("connections") if self.config else None
        tree = overlay(root.entries.get("connections"), config)
        names = tree.entries if isinstance(tree, Map) else None
        tree = overlay(tree, from_environment("connections", names, self.environ))
        if tree is None:
            return {}
        if not isinstance(tree, Map):
            self.problems.append(Diagnostic("MS008", "`connections` must be a map of named connections", tree.span))
            return {}
        return {name: self._connection(name, child) for name, child in tree.entries.items()}

    def _connection(self, name: str, tree: Tree) -> Map:
        if isinstance(tree, Map):
            return tree
        self.problems.append(Diagnostic("MS008", f"connection `{name}` must be a map of options", tree.span))
        return Map({}, {}, tree.span)

    def _origins(self, tree: Tree, prefix: str = "") -> dict[str, str]:
        """option.suboption → the layer it comes from"""
        found: dict[str, str] = {}
        for name, child in tree.entries.items() if isinstance(tree, Map) else ():
            if isinstance(child, Map):
                found |= self._origins(child, f"{prefix}{name}.")
            else:
                found[prefix + name] = origin(child, self.shown)
        return found

    def _tests(self, tree: Tree | None) -> list[Case]:
        if tree is None:
            return []
        if not isinstance(tree, Items):
            self.problems.append(Diagnostic("MS008", "`tests` must be a list", tree.span))
            return []
        cases = []
        for item in tree.items:
            values: Any = plain(item)
            what = f"test `{values['name']}`" if isinstance(values, dict) and "name" in values else "a test"
            try:
                cases.append(Case(CaseOptions.model_validate(values), item.span))
            except ValidationError as error:
                self.problems += diagnose(error, item, what, [CaseOptions])
        return cases


def _at_name(finding: Diagnostic, root: Map) -> Diagnostic:
    """Adds the position of the pipeline's name, which the plan does not have."""
    placed = finding.code == "MS017" and finding.span is None and "name" in root.entries
    return replace(finding, span=root.entries["name"].span) if placed else finding


def case_problems(topology: Topology) -> list[Diagnostic]:
    """Tests that name nodes which do not exist."""
    found = []
    for case in topology.tests:
        sources, names = {node.name for node in topology.sources}, set(topology.by_name)
        for name in case.options.given:
            if name not in sources:
                found.append(
                    Diagnostic(
                        "MS012",
                        f"test `{case.options.name}` gives rows to `{name}`, which is not a source",
                        case.span,
                        help=nearest(name, sources),
                    )
                )
        for name in case.options.expect:
            if name not in names:
                found.append(
                    Diagnostic(
                        "MS012",
                        f"test `{case.options.name}` expects rows of `{name}`, which is not a node",
                        case.span,
                        help=nearest(name, names),
                    )
                )
    return found
