"""The lock table: which jars an extra needs, exactly.

One entry per Spark minor version and extra. Coordinates are complete as they stand: nothing is resolved further, so a jar that is
here is the jar that was tested. The versions are the newest that can be had and work together, not always Spark's own number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Jar:
    """One file, known by its contents."""

    group: str
    artifact: str
    version: str
    size: int
    sha256: str

    @property
    def file(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    @property
    def coordinates(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


LOCK: Mapping[str, Mapping[str, tuple[Jar, ...]]] = {
    "4.1": {
        "avro": (
            Jar(
                group="org.apache.spark",
                artifact="spark-avro_2.13",
                version="4.1.1",
                size=92354,
                sha256="6a19d90bc3b6e88d8db0fa36a19273aa10fea2dbd7a62bb60e4cedd73051b32d",
            ),
        ),
    },
}
