"""What a plugin must do so that pipelines are exact, as checks that a plugin runs on itself in one line. No JVM is needed.

    def test_the_sink_conforms(tmp_path):
        conformance.verify(LinesSink(folder=str(tmp_path)), read=lambda: rows_in(tmp_path))

The checks do what the engine does: they pickle the plugin to its worker, repeat epochs, forget what a crash forgets, and stop in the
middle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from millstream.plan.components.arrow import ArrowSource
from millstream.plan.components.arrow_sink import ArrowSink
from millstream.plan.components.arrow_transform import ArrowTransform
from millstream.plan.components.preprocessor import Preprocessor
from millstream.plan.components.side_output import SideOutput
from millstream.plan.components.udf import Udf
from millstream.testing.conformance import functions, options, sinks, sources, transforms
from millstream.testing.conformance.promises import Check, Finding, run_checks

__all__ = ["Finding", "findings", "verify"]

Read = Callable[[], Sequence[Any]]


def verify(plugin: Any, *, schema: pa.Schema | None = None, read: Read | None = None) -> None:
    """Run all checks on a plugin with its options; AssertionError with everything that is wrong.

    `schema`: the columns of the input that a transform, sink, function or side output needs. Default: a column of every type. `read`: for
    sinks, the rows that readers of the target see now.
    """
    found = findings(plugin, schema=schema, read=read)
    assert not found, "\n".join([f"{type(plugin).__name__} does not conform:", *(f"- {each}" for each in found)])


def findings(plugin: Any, *, schema: pa.Schema | None = None, read: Read | None = None) -> list[Finding]:
    """The same, as a list."""
    with TemporaryDirectory(prefix="millstream-conformance-", ignore_cleanup_errors=True) as folder:  # a check that hangs may still write
        return run_checks([*options.checks(plugin), *_own_checks(plugin, schema, read, Path(folder))])


def _own_checks(plugin: Any, schema: pa.Schema | None, read: Read | None, folder: Path) -> Iterator[Check]:
    if isinstance(plugin, ArrowSource):
        yield from sources.checks(plugin, folder)
    elif isinstance(plugin, ArrowTransform):
        yield from transforms.checks(plugin, schema)
    elif isinstance(plugin, ArrowSink):
        if read is None:
            raise TypeError("the checks of a sink need `read`, which returns the rows that readers of the target see")
        yield from sinks.checks(plugin, schema, read, folder)
    elif isinstance(plugin, Udf):
        yield from functions.udf_checks(plugin, schema)
    elif isinstance(plugin, Preprocessor):
        yield from functions.preprocessor_checks(plugin)
    elif isinstance(plugin, SideOutput):
        yield from functions.side_output_checks(plugin, schema)
    else:
        raise TypeError(f"{type(plugin).__name__} is no plugin: it derives from none of the base classes")
