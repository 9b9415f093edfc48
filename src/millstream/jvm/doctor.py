"""Checks this machine: everything that Millstream needs or can use, with its state and advice.

A finding is not ok only if something required is missing. Optional things (an extra, a jar, the class-data archive) are ok when missing;
the advice says how to get them.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata, version

from millstream.errors import SetupError
from millstream.jvm.cache import cache_dir, size_of, writable
from millstream.jvm.jars import extras_with_jars, jar_paths
from millstream.jvm.java import Java, survey
from millstream.jvm.launch import archive_for
from millstream.jvm.machine import Spark, cores, find_spark, memory

_MB, _GB = 1 << 20, 1 << 30
_NEEDED = 1 * _GB


@dataclass(frozen=True, slots=True)
class Finding:
    """One result."""

    name: str
    ok: bool
    value: str
    advice: str = ""


def examine(environ: Mapping[str, str] = os.environ) -> tuple[Finding, ...]:
    """All findings, in the order in which a start needs them."""
    spark, spark_finding = _spark()
    java, java_finding = _java(environ)
    fixed = (_python(), java_finding, spark_finding, Finding("cores", True, str(cores())), _memory())
    extras = tuple(_extras(environ, spark)) if spark else ()
    return (*fixed, _cache(environ), *_archive(java, spark, environ), *extras)


def _python() -> Finding:
    fine = sys.version_info >= (3, 11)
    value = f"{sys.version.split()[0]} ({sys.executable})"
    return Finding("python", fine, value, "" if fine else "Millstream needs Python 3.11 or newer")


def _java(environ: Mapping[str, str]) -> tuple[Java | None, Finding]:
    passed: list[str] = []
    for place in survey(environ):
        if place.java:
            value = f"{place.java.version} ({place.java.executable}, from {place.origin})"
            return place.java, Finding("java", True, value, "; ".join(passed))
        if place.found or (place.origin == "JAVA_HOME" and environ.get("JAVA_HOME")):
            passed.append(f"{place.origin} is skipped: {place.refusal}")
    advice = "`pip install 'millstream[java]'` brings Java 21, or point JAVA_HOME at Java 17 or 21"
    return None, Finding("java", False, "none that Spark supports", "; ".join([*passed, advice]))


def _spark() -> tuple[Spark | None, Finding]:
    try:
        spark = find_spark()
    except SetupError as error:
        return None, Finding("spark", False, error.diagnostics[0].message, error.diagnostics[0].help)
    fine = bool(extras_with_jars(spark))
    return spark, Finding("spark", fine, f"{spark.version} ({spark.home})", "" if fine else "`pip install 'pyspark>=4.1.4,<4.2'`")


def _memory() -> Finding:
    total = memory()
    advice = "" if total >= _NEEDED else "Spark wants at least 1 GB; `settings.profile: small` uses the least"
    return Finding("memory", True, f"{total / _GB:.1f} GB", advice)


def _cache(environ: Mapping[str, str]) -> Finding:
    folder = cache_dir(environ)
    if not writable(folder):
        return Finding("cache", True, f"{folder}, not writable", "set MILLSTREAM_CACHE to a folder that is: without it every start is slow")
    return Finding("cache", True, f"{folder}, {size_of(folder) / _MB:.0f} MB")


def _archive(java: Java | None, spark: Spark | None, environ: Mapping[str, str]) -> Iterator[Finding]:
    if java and spark:
        made = archive_for(java, spark, environ).made
        advice = "" if made else "the first run makes it in the background; `millstream doctor --warm` makes it now"
        yield Finding("start-up archive", True, "present" if made else "not yet made", advice)


def _extras(environ: Mapping[str, str], spark: Spark) -> Iterator[Finding]:
    packages = _packages_by_extra()
    for extra in sorted({*packages, *extras_with_jars(spark)}):
        missing = [package for package in packages.get(extra, ()) if not _is_installed(package)]
        if missing:
            yield Finding(
                f"extra {extra}", True, f"not installed: {', '.join(missing)}", f"`pip install 'millstream[{extra}]'` if you need it"
            )
        else:
            yield _jars(extra, environ, spark)


def _jars(extra: str, environ: Mapping[str, str], spark: Spark) -> Finding:
    name = f"extra {extra}"
    try:
        located = jar_paths([extra], environ, spark)
    except SetupError as error:
        return Finding(name, False, error.diagnostics[0].message, error.diagnostics[0].help)
    absent = [one.jar.file for one in located if one.path is None]
    if absent:
        return Finding(
            name, True, f"jars not fetched: {', '.join(absent)}", f"fetched when first used, or now by `millstream fetch {extra}`"
        )
    where = ", ".join(str(one.path) for one in located)
    return Finding(name, True, f"installed, {where}" if where else "installed")


def _packages_by_extra() -> dict[str, tuple[str, ...]]:
    """Packages by extra, as the installed distribution declares them."""
    try:
        told = metadata("millstream")
    except PackageNotFoundError:
        return {}
    found: dict[str, tuple[str, ...]] = dict.fromkeys(told.get_all("Provides-Extra") or (), ())
    for line in told.get_all("Requires-Dist") or ():
        match = re.fullmatch(r"([\w.-]+).*;.*extra == ['\"]([\w-]+)['\"].*", line)
        if match:
            found[match[2]] = (*found.get(match[2], ()), match[1])
    return found


def _is_installed(package: str) -> bool:
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False
