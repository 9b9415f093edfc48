"""The lock table: the exact jars that an extra needs.

One entry per Spark minor version and extra. Coordinates are complete: no dependencies are resolved, so the jar is the one that was tested.
The versions are the newest that work together, not always Spark's own version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Jar:
    """One file, identified by its contents."""

    group: str
    artifact: str
    version: str
    size: int
    sha256: str
    extension: str = "jar"
    classifier: str = ""

    @property
    def file(self) -> str:
        return f"{self.artifact}-{self.version}.{self.extension}"

    @property
    def coordinates(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


_AVRO = Jar(
    group="org.apache.spark",
    artifact="spark-avro_2.13",
    version="4.1.1",
    size=92354,
    sha256="6a19d90bc3b6e88d8db0fa36a19273aa10fea2dbd7a62bb60e4cedd73051b32d",
)

LOCK: Mapping[str, Mapping[str, tuple[Jar, ...]]] = {
    "4.1": {
        "avro": (_AVRO,),
        "kafka": (
            Jar(
                group="org.apache.spark",
                artifact="spark-sql-kafka-0-10_2.13",
                version="4.1.3",
                size=491701,
                sha256="cb31ffd9c8f5527dba061db8af671d295562092e4f3f5ff42fc249fab8a8fde6",
            ),
            Jar(
                group="org.apache.spark",
                artifact="spark-token-provider-kafka-0-10_2.13",
                version="4.1.0-preview1",
                size=66117,
                sha256="ab6e27a8a47ce63348dd0ecbd5543dc6212b4783180305cde5749e79684ea97b",
            ),
            Jar(
                group="org.apache.kafka",
                artifact="kafka-clients",
                version="3.9.1",
                size=9215194,
                sha256="7568b998572d256f0b7bc0afdc1b7a2588b8b08415c62ce314c864a6851ae9d9",
            ),
            Jar(
                group="org.apache.commons",
                artifact="commons-pool2",
                version="2.12.1",
                size=152289,
                sha256="5273c8bc8c0dca2211175c0d27efbd7228efae99689aac001a8e1ef8e872e9ef",
            ),
            _AVRO,
        ),
    },
}
