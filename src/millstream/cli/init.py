"""`millstream init`: a pipeline to start from: it runs as it is, and it carries a test."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from millstream.cli.output import narrate
from millstream.errors import Diagnostic, UsageError

_PIPELINE = """\
# yaml-language-server: $schema=./.millstream/schema.json
name: {name}

sources:
  orders:
    type: generator
    rows: 1_000
    seed: 7
    fields:
      id: {{type: sequence}}
      user: {{type: choice, values: [ann, bob, eve], weights: [3, 2, 1]}}
      amount: {{type: uniform, min: 1, max: 500}}
      at: {{type: timestamp, start: 2026-01-01T00:00:00Z, step: 10s}}

transforms:
  large:
    type: sql
    sql: |
      SELECT id, user, amount, at
      FROM orders
      WHERE amount > 400
    primary_key: id

sinks:
  out: {{type: file, from: large, path: out/{name}, format: parquet}}
  screen: {{type: print, from: large, sample_every: 20}}

tests:
  - name: only large orders pass
    given:
      orders:
        - {{id: 1, user: ann, amount: 450, at: 2026-01-01T00:00:00Z}}
        - {{id: 2, user: bob, amount: 5, at: 2026-01-01T00:00:10Z}}
    expect:
      large:
        - {{id: 1, user: ann, amount: 450}}
"""


def init(
    name: Annotated[str, typer.Argument(help="The pipeline's name; also the file's.")] = "pipeline",
    force: Annotated[bool, typer.Option(help="Overwrite a file that is there.")] = False,
) -> None:
    """Write a pipeline to start from."""
    import json

    from millstream.spec.jsonschema import pipeline_schema

    name = name.removesuffix(".yaml").removesuffix(".yml")
    path = Path(f"{name}.yaml")
    if not name.replace("-", "_").replace(".", "_").isidentifier():
        raise UsageError(Diagnostic("MS017", f"`{name}` cannot be the name of a pipeline", help="use letters, digits, `_`, `-` and dots"))
    if path.exists() and not force:
        raise UsageError(Diagnostic("MS001", f"`{path}` is there already", help="choose another name, or `--force` overwrites it"))
    schema = Path(".millstream/schema.json")
    schema.parent.mkdir(exist_ok=True)
    schema.write_text(json.dumps(pipeline_schema()), encoding="utf-8")
    path.write_text(_PIPELINE.format(name=name), encoding="utf-8")
    print(path)
    narrate(f"next:  millstream run {path}      run it")
    narrate(f"       millstream test {path}     run its test")
    narrate(f"       millstream graph {path}    look at it")
