"""The class-data archive: Spark's classes as the JVM keeps them in memory, in a file.

Loading some ten thousand classes is most of what a short run does. With the archive the JVM maps them instead: the start takes
half of the time and a third of the CPU. Making it costs one run of a small pipeline and ten seconds of dumping, so nobody waits
for it: the first session that finds none starts a detached process when it closes (`millstream doctor --warm` makes it at once).

An archive belongs to one Java, one Spark and one list of jars, all part of its name; jars after that list do not disturb it. It
appears by a rename, so it is whole or absent, and the JVM checks it when it starts: one that does not fit is passed over.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir

from millstream.engine.cache import archives_dir, writable
from millstream.engine.java import Java
from millstream.engine.machine import Spark

_KEPT = 3
_PAUSE = 24 * 3600
_STALE = 900
_MAPPED = (
    "-Xshare:auto",
    "-Xlog:disable",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:+VerifySharedSpaces",
    "-XX:ArchiveRelocationMode=0",  # pages stay those of the file: 85 MB less memory than classes moved to another address
)


@dataclass(frozen=True, slots=True)
class Archive:
    """Where the archive of this Java, Spark and class path is, made or not."""

    java: Java
    path: Path

    @property
    def made(self) -> bool:
        return self.path.is_file() and (self.bundled or self.base.is_file())

    @property
    def bundled(self) -> bool:
        """Whether this Java brings an archive of its own classes, which ours builds upon; slim runtimes do not."""
        return (self.java.home / "lib" / "server" / "classes.jsa").is_file()

    @property
    def base(self) -> Path:
        return self.path.with_suffix(".base.jsa")

    def use(self) -> list[str]:
        """Options that let the JVM take its classes from here; it verifies the archive and goes on without one that is damaged."""
        if not self.made:
            return []
        with suppress(OSError):
            os.utime(self.path)
        layers = [self.path] if self.bundled else [self.base, self.path]
        return [f"-XX:SharedArchiveFile={':'.join(map(str, layers))}", *_MAPPED]

    def dump(self, target: Path) -> list[str]:
        """Options that let the JVM write the archive to `target` when it ends."""
        base = [] if self.bundled else [f"-XX:SharedArchiveFile={self.base}"]
        return [*base, f"-XX:ArchiveClassesAtExit={target}", "-Xshare:auto", "-Xlog:disable"]

    def discard(self) -> None:
        for path in (self.path, self.base):
            with suppress(OSError):
                path.unlink()


def archive_of(java: Java, spark: Spark, class_path: Sequence[Path], environ: Mapping[str, str]) -> Archive:
    """The archive's place. Everything that makes it unusable is in its name."""
    digest = hashlib.sha256(f"{java.executable.resolve()} {java.version} {spark.version}".encode())
    for path in (java.home / "release", *class_path):
        with suppress(OSError):
            known = path.stat()
            digest.update(f"{path} {known.st_size} {known.st_mtime_ns}\n".encode())
    return Archive(java, archives_dir(environ) / f"spark-{spark.version}-java-{java.version}-{digest.hexdigest()[:16]}.jsa")


def make_later(archive: Archive, environ: Mapping[str, str]) -> bool:
    """Have the archive made by a detached process, unless it is there, under way, switched off or failed today."""
    off = environ.get("MILLSTREAM_ARCHIVE", "").lower() in {"off", "0", "false", "no"}
    if off or archive.made or _recent(_mark(archive, "lock"), _STALE) or _recent(_mark(archive, "failed"), _PAUSE):
        return False
    if not writable(archive.path.parent):
        return False
    command = [sys.executable, "-P", "-m", "millstream.engine.training"]
    quiet = subprocess.DEVNULL
    modules = os.pathsep.join(filter(None, (str(Path(__file__).parents[2]), environ.get("PYTHONPATH"))))
    known = {"PYTHONPATH": modules, "JAVA_HOME": str(archive.java.home)}
    subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True, cwd=gettempdir(), env={**environ, **known})
    return True


def claim(archive: Archive) -> Path | None:
    """A lock that says who is making the archive; None while somebody else is."""
    lock = _mark(archive, "lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    if not _recent(lock, _STALE):
        lock.unlink(missing_ok=True)
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return None
    return lock


def failed(archive: Archive) -> None:
    """Remember for a day that making it did not work."""
    with suppress(OSError):
        _mark(archive, "failed").touch()


def prune(archive: Archive) -> None:
    """Keep the archives that were used last, and nothing half made."""
    folder = archive.path.parent
    tops = [path for path in folder.glob("*.jsa") if not path.name.endswith(".base.jsa")]
    for old in sorted(tops, key=lambda path: path.stat().st_mtime, reverse=True)[_KEPT:]:
        Archive(archive.java, old).discard()
    for half in folder.glob("*.part"):
        if not _recent(half, _STALE):
            half.unlink(missing_ok=True)


def _mark(archive: Archive, kind: str) -> Path:
    return archive.path.with_suffix(f".{kind}")


def _recent(path: Path, seconds: float) -> bool:
    try:
        return time.time() - path.stat().st_mtime < seconds
    except OSError:
        return False
