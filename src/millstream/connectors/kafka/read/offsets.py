"""Spark's offsets of Kafka sources, as plain numbers: topic → partition → the next message."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from millstream.clients.kafka import Offsets
from millstream.clients.storage import Storage

Parts = dict[str, dict[str, int]]


def parse_offset(offset: Any) -> Parts:
    """Parse an offset in Spark's form, or as it was read back."""
    found: Parts = json.loads(offset) if isinstance(offset, str) else offset
    return found


def format_offset(offset: Any) -> str:
    """Format an offset for Spark's options."""
    return json.dumps(parse_offset(offset))


def at_end(offset: Any, ends: Offsets) -> bool:
    """Whether every partition has reached its end."""
    come = parse_offset(offset)
    return all(come.get(topic, {}).get(str(p), 0) >= end for topic, parts in ends.items() for p, end in parts.items())


def between(offset: Any, latest: Any) -> int:
    """The number of messages between two offsets, including transaction markers."""
    come = parse_offset(offset)
    ends = [(end, come.get(topic, {}).get(p, 0)) for topic, parts in parse_offset(latest).items() for p, end in parts.items()]
    return sum(max(0, end - start) for end, start in ends)


def beyond(offset: Any, ends: Offsets) -> int:
    """The number of messages before the offset but after the ends."""
    come = parse_offset(offset)
    return sum(max(0, come.get(topic, {}).get(str(p), 0) - end) for topic, parts in ends.items() for p, end in parts.items())


def first(log: Storage) -> Parts | None:
    """The first offset in Spark's log of the source; None when there is none."""
    data = log.read("0")
    return json.loads(data[data.index(b"{") :]) if data and b"{" in data else None


def count_gone(start: Any, end: Any, earliest: Offsets) -> int:
    """The number of messages between two offsets that no longer exist, including transaction markers."""
    begin = parse_offset(start)
    places = [(topic, p, last) for topic, parts in parse_offset(end).items() for p, last in parts.items()]
    gaps = [min(last, earliest.get(topic, {}).get(int(p), 0)) - begin.get(topic, {}).get(p, 0) for topic, p, last in places]
    return sum(max(0, gap) for gap in gaps)


def least(offsets: Sequence[Any]) -> Parts:
    """The minimum offset of each partition that every reader has seen."""
    first, *rest = [parse_offset(offset) for offset in offsets]
    return {
        topic: {p: min([o, *(other[topic][p] for other in rest)]) for p, o in parts.items() if _all_have(rest, topic, p)}
        for topic, parts in first.items()
    }


def _all_have(others: list[Parts], topic: str, partition: str) -> bool:
    return all(partition in other.get(topic, {}) for other in others)
