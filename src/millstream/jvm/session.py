"""Starts and stops a Spark session.

`begin` starts the JVM and returns; `finish` waits for it and makes the session. Between the two the caller imports what it needs: the JVM
takes longer to start than PySpark to import, and neither this module nor `begin` imports PySpark. A session that the user already has is
adopted instead, and left running.
"""

from __future__ import annotations

import gc
import itertools
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self

from millstream.errors import Diagnostic, SetupError
from millstream.jvm.archive import Archive, make_later
from millstream.jvm.attachment import attach, detach, require_free
from millstream.jvm.launch import Launch, SessionOptions, plan_launch
from millstream.jvm.process import Jvm
from millstream.jvm.profiles import Profile
from millstream.jvm.quiet import hush

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway
    from pyspark.sql import SparkSession

__all__ = ["Profile", "Session", "SessionOptions", "Starting", "StartupTimes", "begin"]


_runs = itertools.count(1)
_EVERY = 8
"""A garbage collection takes some 50 ms; eight runs hold some 30 MB in the JVM."""


@dataclass(frozen=True, slots=True)
class StartupTimes:
    """Seconds of each step, in order; the JVM starts during the first two."""

    launch: float = 0.0
    imports: float = 0.0
    jvm: float = 0.0
    session: float = 0.0

    def phases(self) -> dict[str, float]:
        return {"launch": self.launch, "import": self.imports, "jvm": self.jvm, "session": self.session}


@dataclass(slots=True)
class Session:
    """A running session. Leaving the `with` block stops it, unless it was adopted."""

    spark: SparkSession
    startup: StartupTimes | None = None
    """None: the session was adopted."""
    diagnostics: tuple[Diagnostic, ...] = ()
    jvm: Jvm | None = None
    archive: Archive | None = None
    """An archive to make when the session ends."""
    give_back: Callable[[], None] | None = None
    """What closing does instead, when the session is lent."""

    @classmethod
    def adopt(cls, spark: SparkSession) -> Self:
        """Use a session of the caller."""
        return cls(spark)

    @property
    def times(self) -> Mapping[str, float]:
        """Seconds by phase; empty for an adopted session."""
        return self.startup.phases() if self.startup else {}

    @property
    def runs(self) -> bool:
        """Whether Spark is still running."""
        return self.spark.sparkContext._jsc is not None

    def close(self) -> None:
        """Stop Spark and end the JVM; idempotent. An adopted session keeps running, without the objects that runs held there."""
        if self.jvm is None or self.give_back is not None:
            _let_go()
            if self.give_back is not None:
                self.give_back()
            return
        jvm, self.jvm = self.jvm, None
        detach(self.spark, jvm)
        if self.archive:
            make_later(self.archive, os.environ)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _let_go() -> None:
    """Every Py4J object refers to itself, so Python frees it only in a cycle collection, and the JVM keeps it until then."""
    if next(_runs) % _EVERY == 0:
        gc.collect()


@dataclass(slots=True)
class Starting:
    """A JVM that is starting."""

    launch: Launch
    jvm: Jvm
    began: float
    launched: float

    def finish(self) -> Session:
        """Wait for the JVM and make the session."""
        import pyspark.sql  # noqa: F401 — at the latest now, while the JVM starts

        hush()
        imported = time.monotonic()
        try:
            gateway = self._connect()
            connected = time.monotonic()
            spark = attach(gateway, self.launch.conf, self.launch.warms)
        except BaseException as error:  # noqa: BLE001 — the JVM must not outlive any failure
            raise self._fail(error) from None
        seconds = (self.launched - self.began, imported - self.launched, connected - imported, time.monotonic() - connected)
        return Session(
            spark, StartupTimes(*seconds), self.launch.diagnostics, self.jvm, self.launch.archive if self.launch.trains else None
        )

    def abandon(self) -> None:
        """End the JVM without a session."""
        detach(None, self.jvm)

    def _connect(self) -> JavaGateway:
        """The gateway; a start that fails with the archive is retried once without it."""
        try:
            return self.jvm.connect()
        except SetupError:
            if not self.launch.archive.made:
                raise
        self.jvm = self.launch.start(archived=False)
        gateway = self.jvm.connect()
        self.launch.archive.discard()
        return gateway

    def _fail(self, error: BaseException) -> BaseException:
        """End the JVM; its log is read before."""
        reason = str(getattr(error, "java_exception", error)).partition("\n")[0] if isinstance(error, Exception) else ""
        words = self.jvm.last_words()
        self.abandon()
        if isinstance(error, SetupError) or not isinstance(error, Exception):
            return error
        return SetupError(
            Diagnostic("MS044", f"Spark did not start: {reason}", detail=words, help="`millstream doctor` checks the machine")
        )


def begin(options: SessionOptions, environ: Mapping[str, str] = os.environ, progress: Callable[[str], None] = lambda _: None) -> Starting:
    """Start the JVM and return at once; only missing jars delay it."""
    began = time.monotonic()
    require_free()
    launch = plan_launch(options, environ, progress)
    jvm = launch.start()
    return Starting(launch, jvm, began, time.monotonic())
