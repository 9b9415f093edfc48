"""`millstream init`: write a pipeline from a template. Each template passes `check` and has a test; the default one runs at once."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from millstream.cli.output import narrate
from millstream.errors import Diagnostic, UsageError, nearest

_DEFAULT = "start"


def template_names() -> list[str]:
    """The names of the templates; the default one is first."""
    names = [entry.name.removesuffix(".yaml") for entry in files("millstream.cli").joinpath("templates").iterdir()]
    return sorted((name for name in names if not name.startswith("_")), key=lambda name: (name != _DEFAULT, name))


def init(
    name: Annotated[str, typer.Argument(help="The name of the pipeline and of its file.")] = "pipeline",
    template: Annotated[
        str,
        typer.Option("--template", "-t", help="The template: start, kafka, postgres-cdc or windows.", autocompletion=template_names),
    ] = _DEFAULT,
    list_: Annotated[bool, typer.Option("--list", help="List the templates and exit.")] = False,
    force: Annotated[bool, typer.Option(help="Overwrite an existing file.")] = False,
) -> None:
    """Write a new pipeline file from a template."""
    if list_:
        print("\n".join(f"{each:<14}{_summary(_text(each))}" for each in template_names()))
        return
    if template not in template_names():
        raise UsageError(Diagnostic("MS008", f"there is no template `{template}`", help=nearest(template, template_names())))
    name = name.removesuffix(".yaml").removesuffix(".yml")
    path = Path(f"{name}.yaml")
    if not name.replace("-", "_").replace(".", "_").isidentifier():
        raise UsageError(Diagnostic("MS017", f"`{name}` cannot be the name of a pipeline", help="use letters, digits, `_`, `-` and dots"))
    if path.exists() and not force:
        raise UsageError(Diagnostic("MS001", f"`{path}` exists already", help="choose another name, or overwrite it with `--force`"))
    _write_schema()
    path.write_text(_text(template).replace("NAME", name), encoding="utf-8")
    print(path)
    _print_next_steps(path, _text(template))


def _text(template: str) -> str:
    return files("millstream.cli").joinpath("templates", f"{template}.yaml").read_text(encoding="utf-8")


def _summary(text: str) -> str:
    """The description of a template: its second line."""
    return text.splitlines()[1].removeprefix("# ")


def _write_schema() -> None:
    """Write the JSON Schema, with which editors complete and check the file."""
    import json

    from millstream.spec.json_schema import pipeline_schema

    schema = Path(".millstream/schema.json")
    schema.parent.mkdir(exist_ok=True)
    schema.write_text(json.dumps(pipeline_schema()), encoding="utf-8")


def _print_next_steps(path: Path, text: str) -> None:
    server = next((name for name in ("kafka", "postgres") if f"millstream dev {name}" in text), "")
    steps = [(f"millstream dev {server}", "start a server, in another terminal")] if server else []
    steps += [(f"millstream run {path}", "run it"), (f"millstream test {path}", "run its test"), (f"millstream graph {path}", "draw it")]
    width = max(len(command) for command, _ in steps)
    for index, (command, what) in enumerate(steps):
        narrate(f"{'next:' if index == 0 else '     '}  {command:<{width}}  {what}")
