"""The resources of this machine: the installed Spark, and the available cores and memory.

Spark is found without importing it, because the JVM starts before PySpark is imported. Cores and memory are the process's limits, not the
hardware's: in a container the two differ, and a heap of half the host's memory would be killed.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from millstream.errors import Diagnostic, SetupError

_CGROUP = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")


@dataclass(frozen=True, slots=True)
class Spark:
    """The Spark inside the installed `pyspark` package."""

    home: Path
    version: str

    @property
    def minor(self) -> str:
        return ".".join(self.version.split(".")[:2])

    @property
    def jars(self) -> tuple[Path, ...]:
        """Spark's own jars, always in the same order: a class-data archive fits only one class path."""
        return tuple(sorted((self.home / "jars").glob("*.jar")))


def find_spark() -> Spark:
    """The installed Spark; its version is in its core jar's name."""
    found = find_spec("pyspark")
    home = Path(found.origin).parent if found and found.origin else None
    core = next((home / "jars").glob("spark-core_*.jar"), None) if home else None
    version = re.fullmatch(r"spark-core_[\d.]+-(.+)\.jar", core.name) if core else None
    if home is None or version is None:
        what = f"`{home}` holds no Spark jars" if home else "the package `pyspark` is not installed"
        raise SetupError(
            Diagnostic("MS044", what, help="`pip install 'pyspark>=4.1.4,<4.2'` (not `pyspark-client`, which has no Spark in it)")
        )
    return Spark(home, version[1])


def cores() -> int:
    """Processors that this process may use, limited by affinity and the container's quota; at least one."""
    affinity = getattr(os, "sched_getaffinity", None)
    usable = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, math.ceil(min(usable, _cpu_quota())))


def memory() -> int:
    """Bytes of memory that this process may use."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [_read(folder / name) for folder in _groups("memory") for name in ("memory.max", "memory.limit_in_bytes")]
    return min([physical, *(int(limit) for limit in limits if limit.isdigit())])


def _cpu_quota() -> float:
    found = [_read(folder / "cpu.max") or _read(folder / "cpu.cfs_quota_us", "cpu.cfs_period_us") for folder in _groups("cpu")]
    quotas = [text.split() for text in found]
    return min((int(quota[0]) / int(quota[1]) for quota in quotas if len(quota) == 2 and quota[0].isdigit()), default=math.inf)


def _groups(controller: str) -> Iterator[Path]:
    """The control groups that limit this process, its own and their parents; version 2 has one tree, version 1 one per controller."""
    for line in _read(_OWN_GROUPS).splitlines():
        _, names, own = line.split(":", 2)
        if not names or controller in names.split(","):
            root = _CGROUP / (controller if names else "")
            group = root / own.lstrip("/")
            yield from (folder for folder in (group, *group.parents) if folder.is_relative_to(root))


def _read(path: Path, *beside: str) -> str:
    try:
        return " ".join(file.read_text().strip() for file in (path, *(path.parent / name for name in beside)))
    except OSError:
        return ""
