"""How the JVM is tuned for what it will do.

| profile | for | collector and compiler |
|---|---|---|
| `short` | small bounded work, tests | serial, first compiler only: half of the CPU time of a start goes into compiling |
| `long` | throughput | parallel (a fifth more rows than G1 on two cores), both compilers |
| `small` | a fraction of a core | serial, first compiler only, few threads, a heap that shrinks when idle |

Batches between the JVM and Python are written without checking the bounds of each value: Arrow's writers grow their buffers first, and a
sixth of the CPU time of handing rows over goes into that check.

The heap is a share of the memory that the process may use, so that the same file fits a laptop and a container.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Literal

from millstream.errors import Diagnostic, SetupError

Profile = Literal["short", "long", "small"]
_MB = 1 << 20
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}

_CODE = "-XX:ReservedCodeCacheSize=240m"
"""With the first compiler only, Java reserves 48 MB for code. Spark generates code for every query, and a JVM whose cache is full ends."""
_FLAGS: Mapping[Profile, tuple[str, ...]] = {
    "short": ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", _CODE),
    "long": ("-XX:+UseParallelGC",),
    "small": (
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        _CODE,
        "-XX:MinHeapFreeRatio=10",
        "-XX:MaxHeapFreeRatio=20",
        "-Xss512k",
        "-Xms48m",
    ),
}
_ARROW = ("-Darrow.enable_unsafe_memory_access=true", "-Darrow.enable_null_check_for_get=false")
_LEAST = 512 * _MB
_LARGEST: Mapping[Profile, int] = {"short": 1024 * _MB, "long": 4096 * _MB, "small": 512 * _MB}


def flags(profile: Profile, heap: int, extra: str = "") -> list[str]:
    """Options for the JVM; `extra` are the user's, and a collector among them replaces ours."""
    own = shlex.split(extra)
    chosen = any(re.fullmatch(r"-XX:\+Use\w+GC", flag) for flag in own)
    ours = [flag for flag in _FLAGS[profile] if not (chosen and flag.endswith("GC"))]
    return [f"-Xmx{max(1, heap // _MB)}m", "-XX:-UsePerfData", *_ARROW, *ours, *own]


def environment(profile: Profile) -> dict[str, str]:
    """Environment variables for the JVM's process; fewer malloc arenas keep native memory small."""
    return {} if profile == "long" else {"MALLOC_ARENA_MAX": "2"}


def heap_bytes(profile: Profile, memory: int, asked: str | None) -> int:
    """The heap: the requested size, or half of the memory up to the profile's maximum; Spark has a minimum."""
    return parse_size(asked) if asked else max(_LEAST, min(_LARGEST[profile], memory // 2))


def parse_size(text: str) -> int:
    """Bytes of `2g`, `512m`, `2GB`, in Spark's and in Millstream's notation."""
    match = re.fullmatch(r"(\d+)\s*([kmgt]?)(?:i?b)?", text.strip().lower())
    if not match:
        raise SetupError(
            Diagnostic("MS009", f"`{text}` is not a size for the driver's memory", help="write a number and a unit, such as `2GB`")
        )
    return int(match[1]) * _UNITS[match[2]]
