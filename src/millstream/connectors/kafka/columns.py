"""Columns that a Kafka source adds to those of its messages."""

from __future__ import annotations

from collections.abc import Mapping

from millstream.plan.changelog import OP, SEQUENCE

METADATA: Mapping[str, str] = {
    "__kafka_topic": "string",
    "__kafka_partition": "int32",
    "__kafka_offset": "int64",
    "__kafka_timestamp": "timestamp",
    "__kafka_headers": "list<struct<key: string, value: binary>>",
    "__kafka_key": "binary",
}
"""Column → type, in the order of the source's documentation."""
CHANGES: Mapping[str, str] = {OP: "string", SEQUENCE: "int64"}
"""The columns of a changelog. Messages of one key share a partition, so the offset is their order."""
