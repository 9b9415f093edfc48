"""`millstream types FILE NODE`: the rows of a script as types of TypeScript."""

from __future__ import annotations

from typing import Annotated

import typer

from millstream.cli.pipelines import ConfigFile, PipelineFile, load_or_fail
from millstream.errors import Diagnostic, UsageError, nearest


def types(
    pipeline: PipelineFile,
    node: Annotated[str, typer.Argument(help="A node of the type `script`.", show_default=False)],
    config: ConfigFile = None,
) -> None:
    """Print the types of the rows of a script, for TypeScript: `Row`, which it gets, and `Result`, which it returns."""
    from millstream.plan.schemas import inputs_of, propagate
    from millstream.scripts.declarations import declare_rows
    from millstream.sql.expressions import only_schema
    from millstream.transforms.script import Script

    topology = load_or_fail(pipeline, config, {}, warn=False)
    scripts = [each.name for each in topology.transforms if isinstance(each.component, Script)]
    if node not in scripts:
        help_ = nearest(node, scripts) if scripts else "the pipeline has no script"
        raise UsageError(Diagnostic("MS012", f"`{node}` is not a script of the pipeline", help=help_))
    found = topology.node(node)
    assert isinstance(found.component, Script)
    given = only_schema(inputs_of(found, propagate(topology)))
    if given is None:
        help_ = "declare the `schema` of the source, or of the `python` node above"
        raise UsageError(Diagnostic("MS012", f"the columns of the rows that `{node}` gets are not known without Spark", help=help_))
    print(declare_rows(node, given, found.component.made(given)), end="")
