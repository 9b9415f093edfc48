"""Type errors of the scripts of a pipeline, as TypeScript's compiler reports them; asked only on request, since it takes seconds."""

from __future__ import annotations

from collections.abc import Iterator

from millstream.errors import Diagnostic
from millstream.plan.schemas import Schemas, inputs_of, propagate
from millstream.plan.topology import Topology
from millstream.scripts.declarations import declare_rows
from millstream.scripts.type_check import check_types, find_compiler
from millstream.sql.expressions import only_schema
from millstream.transforms.script import Script


def script_findings(topology: Topology) -> list[Diagnostic]:
    """The findings in all scripts in TypeScript; a warning when there is no compiler."""
    scripts = [each for each in topology.transforms if isinstance(each.component, Script) and each.component.typed]
    if not scripts:
        return []
    compiler = find_compiler(topology.directory)
    if compiler is None:
        help_ = "npm install --save-dev typescript, in the pipeline's folder or above"
        return [Diagnostic("MS198", "types are not checked: TypeScript's compiler `tsc` was not found", level="warning", help=help_)]
    schemas = propagate(topology)
    return [finding for node in scripts for finding in _findings(topology, node.name, schemas, compiler)]


def _findings(topology: Topology, name: str, schemas: Schemas, compiler: str) -> Iterator[Diagnostic]:
    node = topology.node(name)
    assert isinstance(node.component, Script)
    given = only_schema(inputs_of(node, schemas))
    if given is None:
        message = f"`{name}`: types are not checked: the columns of its rows are not known without Spark"
        yield Diagnostic("MS198", message, node.span, "warning", node=name)
        return
    rows = declare_rows(name, given, node.component.made(given))
    for fault in check_types(compiler, node.component.script, rows, node.component.mode):
        place = node.text_place("script", line=fault.line, column=fault.column)
        yield Diagnostic("MS198", f"`{name}`: {fault.message}", place, help=fault.help, node=name)
