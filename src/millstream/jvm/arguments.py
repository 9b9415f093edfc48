"""The JVM's command line, in files that only this user can read: settings may contain secrets, and every user can see a command line."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from millstream.jvm.java import Java
from millstream.jvm.log import JvmLog
from millstream.jvm.machine import Spark
from millstream.jvm.scratch import Scratch

# Spark's own list (org.apache.spark.launcher.JavaModuleOptions), without the incubator module that slim runtimes lack
_OPENED = (
    "java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.util java.util.concurrent java.util.concurrent.atomic "
    "jdk.internal.ref sun.nio.ch sun.nio.cs sun.security.action sun.util.calendar"
)


@dataclass(frozen=True, slots=True)
class JvmOptions:
    """The options of the JVM."""

    java: Java
    spark: Spark
    class_path: Sequence[str | Path]
    scratch: Scratch
    """The folder for files that the JVM and Spark write besides results."""
    log_dir: Path | None = None
    """Where `jvm.log` goes. Default: the scratch space."""
    log: JvmLog = JvmLog()
    flags: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    submit: Mapping[str, str] | None = None
    """Settings for a start through SparkSubmit, which supports clusters and packages. None: start the gateway directly."""


def write_arguments(options: JvmOptions, log_dir: Path) -> Path:
    """The argument file for `java @file`, with the files that it names next to it."""
    folder = options.scratch.path
    (folder / "log4j2.properties").write_text(options.log.log4j_properties())
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED.split()]
    properties = [f"-D{name}={value}" for name, value in _properties(folder, log_dir).items()]
    fatal = ["-XX:+ExitOnOutOfMemoryError", f"-XX:ErrorFile={log_dir.absolute()}/jvm-crash-%p.log"]
    path = ["-cp", os.pathsep.join(map(str, options.class_path))]
    lines = [*fatal, *options.flags, *opened, *properties, *path, *_entry(options, folder)]
    return _private(folder / "jvm.args", "\n".join(map(quote, lines)))


def _properties(folder: Path, log_dir: Path) -> dict[str, str]:
    return {
        "millstream.logs": str(log_dir.absolute()),
        "java.io.tmpdir": str(folder),  # native libraries are unpacked there, and would not be removed elsewhere
        "log4j2.configurationFile": str(folder / "log4j2.properties"),
        "jdk.reflect.useDirectMethodHandle": "false",
        "io.netty.tryReflectionSetAccessible": "true",
    }


def _entry(options: JvmOptions, folder: Path) -> list[str]:
    if options.submit is None:
        return ["org.apache.spark.api.python.PythonGatewayServer"]
    text = "".join(f"{escape(name)}={escape(value)}\n" for name, value in options.submit.items())
    settings = _private(folder / "spark.properties", text)
    return ["org.apache.spark.deploy.SparkSubmit", "--properties-file", str(settings), "pyspark-shell"]


def _private(path: Path, text: str) -> Path:
    path.touch(mode=0o600)
    path.write_text(text)
    return path


def quote(argument: str) -> str:
    """An argument in the syntax of Java's argument files."""
    return '"' + argument.replace("\\", "\\\\").replace('"', '\\"') + '"'


def escape(text: str) -> str:
    """A key or value of a Java properties file, which Spark reads as UTF-8."""
    plain = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return "".join(f"\\{sign}" if sign in "=:#! " else sign for sign in plain)
