"""A real schema registry beside the broker: Apicurio, whose Confluent-compatible interface every Kafka client speaks.

It keeps its schemas in memory, listens on loopback, and runs inside a JVM that ends with Python (`gateway.py`). The archive is locked
like every jar, fetched once and unpacked once, into the cache. Apicurio accepts any schema unless told otherwise; here it is told what
Confluent's registry does by default: a new schema must be able to read what was written with the last one.
"""

from __future__ import annotations

import json
import os
import tarfile
import tempfile
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from millstream.dev.gateway import Gateway, Server
from millstream.dev.ports import HOST, free_port, require_free
from millstream.jvm.jars import fetch_jars
from millstream.jvm.java import find_java
from millstream.jvm.lock import Jar
from millstream.jvm.machine import find_spark
from millstream.jvm.scratch import make_scratch

APICURIO = "3.0.9"
ARCHIVE = Jar(
    group="io.apicurio",
    artifact="apicurio-registry-app",
    version=APICURIO,
    size=108860403,
    sha256="2b28181501a20cbf6efcd77f9b7153908fc01f3d3a7c32024c0bd9e1b04c8a43",
    extension="tar.gz",
    classifier="all",
)
_RUNNER = f"apicurio-registry-app-{APICURIO}-runner.jar"
_SECONDS = 10


@dataclass
class Registry(Server):
    """A registry that runs, or that was stopped and can be started again, empty."""

    name: ClassVar[str] = "the schema registry"

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/apis/ccompat/v7"

    @cached_property
    def gateway(self) -> Gateway:
        listens = (f"-Dquarkus.http.host={HOST}", f"-Dquarkus.http.port={self.port}")
        # its standard output is not read: the registry would block when the pipe is full
        logs = (
            "-Dquarkus.log.console.stderr=true",
            "-Dquarkus.log.level=WARN",
            "-Djava.util.logging.manager=org.jboss.logmanager.LogManager",
        )
        return Gateway(self.java, self.jars, (*listens, *logs), self.scratch.path / "registry.log")

    def serve(self) -> None:
        self.gateway.jvm.io.quarkus.runner.ApplicationImpl().start(self.gateway.texts([]))
        self.compatibility("BACKWARD")

    def compatibility(self, level: str, subject: str = "") -> None:
        """What a new schema must be able to do: `BACKWARD`, `FORWARD`, `FULL`, `NONE`."""
        url, data = f"{self.url}/config/{subject}".rstrip("/"), json.dumps({"compatibility": level}).encode()
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method="PUT")
        urllib.request.urlopen(request, timeout=_SECONDS).close()


def start_registry(port: int = 0, environ: Mapping[str, str] = os.environ, progress: Callable[[str], None] = lambda _: None) -> Registry:
    """A new registry that answers; `port` 0 takes a free one. The archive is fetched first when it is missing."""
    if port:
        require_free(port, "the schema registry")
    java, spark = find_java(environ), find_spark()
    (archive,) = fetch_jars([ARCHIVE], java, progress, environ, spark)
    gateway = [path for path in spark.jars if path.name.startswith("py4j-")]
    registry = Registry(java, (*gateway, unpack(archive) / _RUNNER), make_scratch(), port or free_port())
    try:
        registry.start()
    except BaseException:
        registry.stop()
        raise
    return registry


def unpack(archive: Path) -> Path:
    """The folder next to the archive; it gets its name only when it is complete."""
    folder = archive.with_name(archive.name.removesuffix(".tar.gz"))
    if folder.is_dir():
        return folder
    with tempfile.TemporaryDirectory(prefix=".unpack-", dir=archive.parent) as temporary, tarfile.open(archive) as packed:
        packed.extractall(Path(temporary) / "whole", filter="data")
        try:
            (Path(temporary) / "whole").rename(folder)
        except OSError:  # another process was first
            if not folder.is_dir():
                raise
    return folder
