"""The class-data archive: a file with Spark's classes in the form that the JVM keeps in memory.

Loading about ten thousand classes is most of the work of a short run. With the archive the JVM maps them instead: the start takes half of
the time and a third of the CPU. Making it costs one run of a small pipeline and ten seconds of dumping, so no run waits for it: the first
session without an archive starts a detached process when it closes (`millstream doctor --warm` makes it at once).
An archive belongs to one Java, one Spark and one list of jars, which are all part of its name; jars after that list do not matter. A rename
puts it in place, so it is complete or absent. The JVM verifies it at the start and ignores one that does not fit.
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

from millstream.jvm.cache import archives_dir, writable
from millstream.jvm.java import Java
from millstream.jvm.machine import Spark

_KEPT = 3
_PAUSE = 24 * 3600
_STALE = 900
_MAPPED = (
    "-Xshare:auto",
    "-Xlog:disable",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:+VerifySharedSpaces",
    "-XX:ArchiveRelocationMode=0",  # pages are shared with the file: 85 MB less memory than relocated classes
)


@dataclass(frozen=True, slots=True)
class Archive:
    """The path of the archive for this Java, Spark and class path, whether it exists or not."""

    java: Java
    path: Path

    @property
    def made(self) -> bool:
        return self.path.is_file() and (self.bundled or self.base.is_file())

    @property
    def bundled(self) -> bool:
        """Whether this Java includes an archive of its own classes, on which ours is based; slim runtimes do not."""
        return (self.java.home / "lib" / "server" / "classes.jsa").is_file()

    @property
    def base(self) -> Path:
        return self.path.with_suffix(".base.jsa")

    def use(self) -> list[str]:
        """Options that make the JVM load classes from the archive; it verifies the archive and ignores a damaged one."""
        if not self.made:
            return []
        with suppress(OSError):
            os.utime(self.path)
        layers = [self.path] if self.bundled else [self.base, self.path]
        return [f"-XX:SharedArchiveFile={':'.join(map(str, layers))}", *_MAPPED]

    def dump(self, target: Path) -> list[str]:
        """Options that make the JVM write the archive to `target` when it ends."""
        base = [] if self.bundled else [f"-XX:SharedArchiveFile={self.base}"]
        return [*base, f"-XX:ArchiveClassesAtExit={target}", "-Xshare:auto", "-Xlog:disable"]

    def discard(self) -> None:
        for path in (self.path, self.base):
            with suppress(OSError):
                path.unlink()


def archive_of(java: Java, spark: Spark, class_path: Sequence[Path], environ: Mapping[str, str]) -> Archive:
    """The archive's path. Everything that would make it unusable is part of its name."""
    digest = hashlib.sha256(f"{java.executable.resolve()} {java.version} {spark.version}".encode())
    for path in (java.home / "release", *class_path):
        with suppress(OSError):
            known = path.stat()
            digest.update(f"{path} {known.st_size} {known.st_mtime_ns}\n".encode())
    return Archive(java, archives_dir(environ) / f"spark-{spark.version}-java-{java.version}-{digest.hexdigest()[:16]}.jsa")


def make_later(archive: Archive, environ: Mapping[str, str]) -> bool:
    """Start a detached process that makes the archive, unless it exists, is being made, is switched off or failed today."""
    off = environ.get("MILLSTREAM_ARCHIVE", "").lower() in {"off", "0", "false", "no"}
    if off or archive.made or _recent(_mark(archive, "lock"), _STALE) or _recent(_mark(archive, "failed"), _PAUSE):
        return False
    if not writable(archive.path.parent):
        return False
    command = [sys.executable, "-P", "-m", "millstream.jvm.training"]
    quiet = subprocess.DEVNULL
    modules = os.pathsep.join(filter(None, (str(Path(__file__).parents[2]), environ.get("PYTHONPATH"))))
    known = {"PYTHONPATH": modules, "JAVA_HOME": str(archive.java.home)}
    subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True, cwd=gettempdir(), env={**environ, **known})
    return True


def claim(archive: Archive) -> Path | None:
    """A lock for making the archive; None while another process holds it."""
    lock = _mark(archive, "lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    if not _recent(lock, _STALE):
        lock.unlink(missing_ok=True)
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return None
    return lock


def record_failure(archive: Archive) -> None:
    """Record for a day that making it failed."""
    with suppress(OSError):
        _mark(archive, "failed").touch()


def prune(archive: Archive) -> None:
    """Keep the most recently used archives, and remove unfinished ones."""
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
