"""Computes the JVM's options and Spark's settings from the session options.

The class path is Spark's jars in a fixed order and our own, then those of the extras, then the user's. The class-data archive covers the
first part, independent of the rest. One of Spark's jars is omitted unless requested: MLlib registers itself with every SQL session, and
loads Scala's reflection, which costs half a second and is not needed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from millstream.errors import Diagnostic
from millstream.jvm.archive import Archive, archive_of
from millstream.jvm.arguments import JvmOptions
from millstream.jvm.configuration import accept_conf, defaults, is_local, needs_submit
from millstream.jvm.jars import fetch
from millstream.jvm.java import Java, find_java
from millstream.jvm.log import JvmLog
from millstream.jvm.machine import Spark, cores, find_spark, memory
from millstream.jvm.process import Jvm, start_jvm
from millstream.jvm.profiles import Profile, environment, flags, heap_bytes
from millstream.jvm.scratch import make_scratch

_MLLIB = "spark-mllib_"
_EXTENSIONS = "spark.sql.extensions"
OWN_CLASSES = Path(__file__).parent / "java_classes" / "millstream.jar"
"""Our own classes: `local_files.py` describes those of files, `engine/lowering/traces.py` those of traces, and `sql/own_functions.py` those
of SQL functions.
"""


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """The options of a session."""

    app_name: str = "millstream"
    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict)
    """Spark's own settings; they override our defaults."""
    profile: Profile = "long"
    extras: tuple[str, ...] = ()
    """Extras whose jars are needed. `mllib` is part of Spark, and omitted unless it is named here."""
    log_dir: Path | None = None
    """Where `jvm.log` goes. Default: a temporary folder."""
    log: JvmLog = JvmLog()
    driver_memory: str | None = None
    """The JVM's heap. Default: `spark.driver.memory`, else a share of the machine's memory that fits the profile."""


@dataclass(frozen=True, slots=True)
class Launch:
    """The decisions before the JVM starts."""

    options: JvmOptions
    conf: Mapping[str, str]
    archive: Archive
    trains: bool
    """Whether a missing archive is made when the session ends; not on very small machines."""
    warms: bool
    """Whether a second core can help with the start."""
    diagnostics: tuple[Diagnostic, ...]

    def start(self, archived: bool = True) -> Jvm:
        """Start the JVM, with the class-data archive if there is one."""
        layers = self.archive.use() if archived else []
        return start_jvm(replace(self.options, flags=(*layers, *self.options.flags)))


def plan_launch(options: SessionOptions, environ: Mapping[str, str], progress: Callable[[str], None]) -> Launch:
    """Find Java and Spark, fetch the jars, compute every setting."""
    java, spark = find_java(environ), find_spark()
    jars = fetch(options.extras, java, progress, environ, spark)
    own, warnings = accept_conf(options.conf)
    scratch = make_scratch()
    conf = _settings(options, own, scratch.path, jars, environ)
    jvm = JvmOptions(
        java=java,
        spark=spark,
        class_path=(*base_class_path(spark), *_rest(options, spark, jars, own, environ)),
        scratch=scratch,
        log_dir=options.log_dir,
        log=options.log,
        flags=_flags(options, own),
        environment=environment(options.profile) | _environment(options.master, conf),
        submit=conf if needs_submit(options.master, own) else None,
    )
    spare = options.profile != "small"
    return Launch(jvm, conf, archive_for(java, spark, environ), trains=spare, warms=spare and cores() > 1, diagnostics=warnings)


def archive_for(java: Java, spark: Spark, environ: Mapping[str, str]) -> Archive:
    """The archive that fits every session of this Java and Spark."""
    return archive_of(java, spark, base_class_path(spark), environ)


def base_class_path(spark: Spark) -> tuple[Path, ...]:
    return (*(path for path in spark.jars if not path.name.startswith(_MLLIB)), OWN_CLASSES)


def _rest(
    options: SessionOptions, spark: Spark, jars: list[Path], conf: Mapping[str, str], environ: Mapping[str, str]
) -> Iterator[str | Path]:
    yield from jars
    if "mllib" in options.extras:
        yield from (path for path in spark.jars if path.name.startswith(_MLLIB))
    yield from (jar.removeprefix("file:") for jar in conf.get("spark.jars", "").split(",") if jar)
    yield from filter(None, conf.get("spark.driver.extraClassPath", "").split(os.pathsep))
    yield from filter(None, map(environ.get, ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR")))


def _settings(
    options: SessionOptions, own: Mapping[str, str], folder: Path, jars: list[Path], environ: Mapping[str, str]
) -> dict[str, str]:
    conf = defaults(options.master, options.profile, cores(), folder) | dict(own)
    conf |= {"spark.master": options.master, "spark.app.name": options.app_name, "spark.submit.deployMode": "client"}
    conf.setdefault("spark.pyspark.python", environ.get("PYSPARK_PYTHON") or sys.executable)
    conf[_EXTENSIONS] = ",".join(filter(None, [own.get(_EXTENSIONS), "millstream.SqlFunctions"]))
    if not is_local(options.master):  # workers need them too
        conf["spark.jars"] = ",".join([*map(str, jars), str(OWN_CLASSES), *filter(None, [own.get("spark.jars")])])
    return conf


def _flags(options: SessionOptions, conf: Mapping[str, str]) -> list[str]:
    heap = heap_bytes(options.profile, memory(), options.driver_memory or conf.get("spark.driver.memory"))
    return flags(options.profile, heap, conf.get("spark.driver.extraJavaOptions", ""))


def _environment(master: str, conf: Mapping[str, str]) -> dict[str, str]:
    """Environment variables that Spark reads in the JVM; a local Spark does not need to look up the network's interfaces."""
    python = {"PYSPARK_PYTHON": conf["spark.pyspark.python"], "PYSPARK_DRIVER_PYTHON": sys.executable, "SPARK_CONNECT_MODE": "0"}
    local = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "127.0.0.1"}
    return python | (local if is_local(master) else {})
