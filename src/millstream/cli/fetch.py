"""`millstream fetch`: download the jars of extras before a run needs them, for container images and for hosts without a network."""

from __future__ import annotations

import json
import os
from typing import Annotated

import typer

from millstream.cli.output import Format, narrate


def fetch(
    extras: Annotated[
        list[str] | None, typer.Argument(help="Extras such as `avro`. Default: all extras that need jars.", show_default=False)
    ] = None,
    format: Annotated[Format, typer.Option(help="`json` prints one object on stdout.")] = Format.text,
) -> None:
    """Download the jars of extras into the cache."""
    from millstream.jvm import jars
    from millstream.jvm.java import find_java
    from millstream.jvm.machine import find_spark

    spark = find_spark()
    wanted = extras or list(jars.extras_with_jars(spark))
    jars.require_known(wanted, spark)
    paths = jars.fetch(wanted, find_java(os.environ), narrate, os.environ, spark)
    if format is Format.json:
        print(json.dumps({"extras": wanted, "jars": [str(path) for path in paths]}, indent=2))
        return
    for path in paths:
        print(path)
    narrate(f"✓ {', '.join(wanted)}: {len(paths)} jar{'' if len(paths) == 1 else 's'} ready")
