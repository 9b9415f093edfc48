"""Registers the user's functions in a session under the names that SQL calls. Spark evaluates them over whole Arrow batches.

A registration belongs to the session of the run. Spark clones the session when a query starts, so functions are registered before that;
they are removed from the session when the run ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type

from millstream.errors import Diagnostic, RunError
from millstream.jvm.pickling import by_value
from millstream.plan.declarations import Resolved, UserFunction
from millstream.registry.loading import own_modules
from millstream.sql.catalyst.user_aggregates import PREFIX
from millstream.worker import udf


@contextmanager
def functions_registered(
    spark: SparkSession, functions: tuple[UserFunction, ...], directory: Path, hidden: tuple[str, ...] = ()
) -> Iterator[None]:
    """SQL of the session can call the functions while the body runs."""
    catalog = spark._jsparkSession.sessionState().catalog()
    resolved = [used.resolve(directory) for used in functions]
    for used, found in zip(functions, resolved, strict=True):
        if spark.catalog.functionExists(_registered_name(found)):
            message = f"the Spark session at hand already has a function `{used.name}`"
            raise RunError(Diagnostic("MS019", message, used.span, help="give yours another name"))
    try:
        register(spark, functions, directory, hidden)
        yield
    finally:
        for found in resolved:
            catalog.dropTempFunction(_registered_name(found), True)


def register(spark: SparkSession, functions: tuple[UserFunction, ...], directory: Path, hidden: tuple[str, ...] = ()) -> None:
    """Register the functions in a session and replace others of the same names. `hidden`: secrets that must not appear in their errors."""
    for used in functions:
        packages = own_modules(type(used.plugin)) if used.plugin is not None else []
        with by_value(*packages):
            _register(spark, used.resolve(directory), directory, hidden)


def _register(spark: SparkSession, function: Resolved, directory: Path, hidden: tuple[str, ...]) -> None:
    kind = from_arrow_type(function.returns, prefer_timestamp_ntz=True)
    expected: pa.DataType = to_arrow_type(kind)
    runner = udf.FunctionRunner(function.name, function.call, expected, function.aggregate, str(directory.resolve()), hidden)
    declare: Any = arrow_udf  # its stubs ask for a kind, at whose sight it warns
    declared = declare(lambda *columns: runner.run(columns), kind)
    if not function.deterministic:
        declared = declared.asNondeterministic()
    with by_value(function=function.call, directory=directory):
        spark.udf.register(_registered_name(function), declared)


def _registered_name(function: Resolved) -> str:
    return f"{PREFIX}{function.name}" if function.aggregate else function.name
