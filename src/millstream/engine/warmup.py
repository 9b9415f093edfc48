"""The second core's work during start-up.

Making the Spark context keeps one core busy and touches nothing of Spark SQL. Meanwhile a thread brings up what every query needs
and what needs no context: the SQL parser, the table of functions, the compiler of generated code, JSON. The CPU time is the same,
the wait is shorter by a tenth.

It is over before the SQL session is made. Spark's core never initialises a class of Spark SQL, so up to that point the two
threads cannot wait for each other's classes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

_CODE = "public Object generate(Object[] inputs) { int n = 0; for (Object input : inputs) { n += input == null ? 0 : 1; } return n; }"


@contextmanager
def warming(gateway: JavaGateway, useful: bool) -> Iterator[None]:
    """Warm up while the body runs; the body's end waits for it."""
    thread = threading.Thread(target=_warm, args=(gateway,), daemon=True, name="millstream-warmup")
    if useful:
        thread.start()
    try:
        yield
    finally:
        if useful:
            thread.join()


def _warm(gateway: JavaGateway) -> None:
    with suppress(Exception):  # whatever is missing is brought up later, by the query that needs it
        _object(gateway, "org.apache.spark.sql.catalyst.parser.CatalystSqlParser").parseExpression("a > 0")
        _object(gateway, "org.apache.spark.sql.catalyst.analysis.FunctionRegistry").builtin()
        gateway.jvm.org.codehaus.janino.ClassBodyEvaluator().cook(_CODE)
        gateway.jvm.com.fasterxml.jackson.databind.ObjectMapper().writeValueAsString("")


def _object(gateway: JavaGateway, name: str) -> Any:
    """A Scala object."""
    return getattr(getattr(gateway.jvm, f"{name}$"), "MODULE$")
