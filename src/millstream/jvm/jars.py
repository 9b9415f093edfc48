"""Connector jars: locked, fetched once, cached.

A jar is searched in the folder MILLSTREAM_JARS first (its files are trusted, so another build can be used), then in the cache. Missing jars
are fetched with the Ivy that Spark includes, into a folder next to the cache, compared with the lock table, and only then moved into it: a
cache never holds a partial jar. If all jars are present, there is no network access.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from millstream.errors import Diagnostic, SetupError, UsageError, nearest
from millstream.jvm.cache import jars_dir
from millstream.jvm.java import Java
from millstream.jvm.lock import LOCK, Jar
from millstream.jvm.machine import Spark, find_spark

Progress = Callable[[str], None]
_TIMEOUT = 300
_NAMED = 6
"""At most this many jars are named in a message."""
_IVY = (
    '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven"><info organisation="millstream" module="jars"/>'
    '<configurations><conf name="default"/></configurations>'
)
_DEPENDENCY = (
    '<dependency org="{0.group}" name="{0.artifact}" rev="{0.version}" transitive="false" conf="default->default">{1}</dependency>'
)
_ARTIFACT = '<artifact name="{0.artifact}" type="{0.extension}" ext="{0.extension}" m:classifier="{0.classifier}"/>'
_WITHOUT_POMS = (
    '<ivysettings><settings defaultResolver="central"/>'
    '<resolvers><ibiblio name="central" m2compatible="true" usepoms="false"/></resolvers></ivysettings>'
)
"""Ivy does not resolve dependencies: what the POMs refer to need not exist."""


@dataclass(frozen=True, slots=True)
class Located:
    """A locked jar and its path, if it is present."""

    jar: Jar
    path: Path | None


def extras_with_jars(spark: Spark | None = None) -> tuple[str, ...]:
    """Names of the extras that need jars with this Spark."""
    return tuple(sorted(LOCK.get((spark or find_spark()).minor, {})))


def jar_paths(extras: Iterable[str], environ: Mapping[str, str] = os.environ, spark: Spark | None = None) -> tuple[Located, ...]:
    """The jars that the extras need, with their paths if present."""
    return locate(_jars_of(extras, spark or find_spark()), environ)


def locate(jars: Iterable[Jar], environ: Mapping[str, str] = os.environ) -> tuple[Located, ...]:
    """The jars with their paths if present."""
    return tuple(Located(jar, _find_given(jar, environ) or _find_cached(jar, environ)) for jar in jars)


def fetch(
    extras: Sequence[str],
    java: Java,
    progress: Progress,
    environ: Mapping[str, str] = os.environ,
    spark: Spark | None = None,
) -> list[Path]:
    """All jars of the extras, fetched where they are missing."""
    spark = spark or find_spark()
    return fetch_jars(_jars_of(extras, spark), java, progress, environ, spark)


def fetch_jars(
    jars: Sequence[Jar], java: Java, progress: Progress, environ: Mapping[str, str] = os.environ, spark: Spark | None = None
) -> list[Path]:
    """All of the jars, fetched where they are missing."""
    missing = [located.jar for located in locate(jars, environ) if located.path is None]
    if missing:
        named = ", ".join(jar.coordinates for jar in missing) if len(missing) <= _NAMED else f"{len(missing)} jars"
        progress(f"fetching {named} ({sum(jar.size for jar in missing) / 1e6:.1f} MB), once")
        _fetch(missing, java, spark or find_spark(), environ)
    return [located.path for located in locate(jars, environ) if located.path]


def require_known(extras: Iterable[str], spark: Spark | None = None) -> None:
    """Refuse a name that is not an extra with jars."""
    known = extras_with_jars(spark)
    unknown = [extra for extra in extras if extra not in known]
    if unknown:
        raise UsageError([Diagnostic("MS042", f"no extra with jars is called `{extra}`", help=nearest(extra, known)) for extra in unknown])


def intact(jar: Jar, path: Path) -> bool:
    """Whether the file is the locked one, byte for byte."""
    with path.open("rb") as file:
        return path.stat().st_size == jar.size and hashlib.file_digest(file, "sha256").hexdigest() == jar.sha256


def _jars_of(extras: Iterable[str], spark: Spark) -> list[Jar]:
    """The jars of the extras, each once; an extra without jars adds none."""
    table = LOCK.get(spark.minor, {})
    return list(dict.fromkeys(jar for extra in sorted(set(extras)) for jar in table.get(extra, ())))


def _find_given(jar: Jar, environ: Mapping[str, str]) -> Path | None:
    folder = environ.get("MILLSTREAM_JARS")
    if not folder:
        return None
    exact = Path(folder) / jar.file
    others = sorted(Path(folder).glob(f"{jar.artifact}-[0-9]*.{jar.extension}"))
    return exact if exact.is_file() else next(reversed(others), None)


def _find_cached(jar: Jar, environ: Mapping[str, str]) -> Path | None:
    path = jars_dir(environ) / jar.file
    if not path.is_file():
        return None
    if not intact(jar, path):
        raise SetupError(_wrong_contents(jar, f"`{path}`", "remove the file and run `millstream fetch`"))
    return path


def _fetch(jars: Sequence[Jar], java: Java, spark: Spark, environ: Mapping[str, str]) -> None:
    target = jars_dir(environ)
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=target) as folder:
            _run_ivy(jars, java, spark, environ, Path(folder))
            for jar in jars:
                arrived = Path(folder) / jar.file
                if not intact(jar, arrived):
                    raise SetupError(
                        _wrong_contents(
                            jar, f"`{jar.coordinates}` as fetched", "nothing was cached; fetch again, or from another repository"
                        )
                    )
                arrived.replace(target / jar.file)
    except OSError as error:
        raise SetupError(Diagnostic("MS042", f"jars cannot be written to `{target}`: {error.strerror or error}", help=_OFFLINE)) from None


def _run_ivy(jars: Sequence[Jar], java: Java, spark: Spark, environ: Mapping[str, str], folder: Path) -> None:
    description = folder / "ivy.xml"
    wanted = "".join(_DEPENDENCY.format(jar, _ARTIFACT.format(jar) if jar.classifier else "") for jar in jars)
    description.write_text(_IVY + f"<dependencies>{wanted}</dependencies></ivy-module>")
    settings = ["-settings", environ["MILLSTREAM_IVY_SETTINGS"]] if environ.get("MILLSTREAM_IVY_SETTINGS") else []
    if not settings and any(jar.classifier for jar in jars):
        (folder / "settings.xml").write_text(_WITHOUT_POMS)
        settings = ["-settings", str(folder / "settings.xml")]
    ivy = [path for path in spark.jars if path.name.startswith("ivy-")]
    command: list[str | Path] = [java.executable, "-cp", *ivy, "org.apache.ivy.Main", *settings, "-ivy", description, "-confs", "default"]
    command += ["-cache", folder / "ivy", "-retrieve", f"{folder}/[artifact]-[revision].[ext]"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        raise SetupError(_fetch_failure(jars, f"no answer in {_TIMEOUT} s")) from None
    if ended.returncode or not all((folder / jar.file).is_file() for jar in jars):
        raise SetupError(_fetch_failure(jars, _reason(ended.stdout + ended.stderr)))


def _reason(output: str) -> str:
    """The lines of Ivy's report that name the failure."""
    lines = [line.strip(": \t") for line in output.splitlines()]
    telling = [line for line in lines if "not found" in line or "xception" in line or "ERROR" in line or "Server access" in line]
    return "\n".join(dict.fromkeys(telling[:5] or [line for line in lines if line][-3:]))


_OFFLINE = "run `millstream fetch` where there is a network, or set MILLSTREAM_JARS to a folder that holds the jars"


def _fetch_failure(jars: Sequence[Jar], reason: str) -> Diagnostic:
    names = ", ".join(f"`{jar.file}`" for jar in jars) if len(jars) <= _NAMED else f"{len(jars)} jars"
    return Diagnostic("MS042", f"{names} could not be fetched", detail=reason, help=_OFFLINE)


def _wrong_contents(jar: Jar, what: str, way_out: str) -> Diagnostic:
    expected = f"expected {jar.size} bytes with sha256 {jar.sha256}"
    return Diagnostic("MS043", f"{what} is not the jar in the lock table", detail=expected, help=way_out)
