"""Attaches PySpark to our JVM, and detaches it again.

PySpark keeps its gateway, context and session in class attributes and expects one JVM per process. Only this module sets them and resets
them, so that the next session of the process can use another JVM.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from millstream.errors import Diagnostic, SetupError
from millstream.jvm.warmup import warm_up

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from millstream.jvm.process import Jvm

_STOP_TIMEOUT = 20.0


def require_free() -> None:
    """Refuse a second session in one process, which PySpark does not support."""
    core = _core()
    if core and core._active_spark_context:
        what = "a Spark session already runs in this process"
        raise SetupError(Diagnostic("MS044", what, help="hand it over: `StreamEnvironment(spark=…)`; or stop it first"))


def attach(gateway: JavaGateway, conf: Mapping[str, str], warm: bool = False) -> SparkSession:
    """A session in the JVM behind the gateway; `warm` uses a second core meanwhile."""
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    from millstream.jvm.names import with_known_names

    _release()
    gateway.jvm = with_known_names(gateway.jvm)
    settings = SparkConf(_jvm=gateway.jvm)
    for name, value in conf.items():
        settings.set(name, value)
    with _own_interrupts(), warm_up(gateway, warm):
        context = SparkContext(conf=settings, gateway=gateway)
    context.pythonExec = conf["spark.pyspark.python"]
    context._accumulatorServer.handle_error = lambda *_: None  # type: ignore[method-assign]  # it prints a trace when the JVM closes the connection
    spark = SparkSession(context)
    if "spark.sql.shuffle.partitions" not in conf:
        spark.conf.set("spark.sql.shuffle.partitions", max(2, context.defaultParallelism))
    return spark


def detach(spark: SparkSession | None, jvm: Jvm, patience: float = 0.0) -> None:
    """Stop Spark, end the JVM, and reset PySpark to its state before the start."""
    if spark:
        guard = threading.Timer(_STOP_TIMEOUT, jvm.process.kill)
        guard.daemon = True
        guard.start()
        with suppress(Exception):  # a dead JVM cannot be stopped
            _stop(spark)
        guard.cancel()
        type(spark.sparkContext)._active_spark_context = None
    _release()
    jvm.close(patience)


def _stop(spark: SparkSession) -> None:
    """Stop the session. PySpark waits up to half a second for a polling thread; we do not wait for it."""
    context = spark.sparkContext
    server = context._accumulatorServer
    context._accumulatorServer = None  # type: ignore[assignment]  # as PySpark's own stop does
    threading.Thread(target=server.shutdown, daemon=True).start()
    spark.stop()


def _release() -> None:
    """Release the JVM that PySpark refers to: ours, or one that a stopped session left; never one in use."""
    core = _core()
    if core and not core._active_spark_context and (gateway := core._gateway):
        core._gateway = core._jvm = None
        with suppress(Exception):  # the other end may be closed
            gateway.shutdown()
            gateway.proc.stdin.close()


def _core() -> type[SparkContext] | None:
    """PySpark's context class, if PySpark has been imported."""
    module = sys.modules.get("pyspark.core.context")
    return module.SparkContext if module else None


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Prevent PySpark from replacing the handler of Ctrl-C."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)
