"""Spark's offsets of Kafka sources, as plain numbers: topic → partition → the next message."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from millstream.clients.kafka import Offsets
from millstream.clients.storage import Storage

Parts = dict[str, dict[str, int]]


def parsed(offset: Any) -> Parts:
    """An offset as Spark writes it, or as it is read back."""
    found: Parts = json.loads(offset) if isinstance(offset, str) else offset
    return found


def written(offset: Any) -> str:
    """An offset as Spark's options take it."""
    return json.dumps(parsed(offset))


def at_end(offset: Any, ends: Offsets) -> bool:
    """Whether every partition has come to its end."""
    come = parsed(offset)
    return all(come.get(topic, {}).get(str(p), 0) >= end for topic, parts in ends.items() for p, end in parts.items())


def between(offset: Any, latest: Any) -> int:
    """How many messages, transactions' own marks included, lie between two offsets."""
    come = parsed(offset)
    ends = [(end, come.get(topic, {}).get(p, 0)) for topic, parts in parsed(latest).items() for p, end in parts.items()]
    return sum(max(0, end - start) for end, start in ends)


def beyond(offset: Any, ends: Offsets) -> int:
    """How many messages before the offset lie behind the ends."""
    come = parsed(offset)
    return sum(max(0, come.get(topic, {}).get(str(p), 0) - end) for topic, parts in ends.items() for p, end in parts.items())


def first(log: Storage) -> Parts | None:
    """Where Spark's source began, by its own log; None when it has written none."""
    data = log.read("0")
    return json.loads(data[data.index(b"{") :]) if data and b"{" in data else None


def gone(start: Any, end: Any, earliest: Offsets) -> int:
    """How many messages, transactions' own marks included, lie between two offsets and are not there any more."""
    begin = parsed(start)
    places = [(topic, p, last) for topic, parts in parsed(end).items() for p, last in parts.items()]
    gaps = [min(last, earliest.get(topic, {}).get(int(p), 0)) - begin.get(topic, {}).get(p, 0) for topic, p, last in places]
    return sum(max(0, gap) for gap in gaps)


def least(offsets: Sequence[Any]) -> Parts:
    """The least offset of each partition that every reader has seen."""
    first, *rest = [parsed(offset) for offset in offsets]
    return {
        topic: {p: min([o, *(other[topic][p] for other in rest)]) for p, o in parts.items() if _seen(rest, topic, p)}
        for topic, parts in first.items()
    }


def _seen(others: list[Parts], topic: str, partition: str) -> bool:
    return all(partition in other.get(topic, {}) for other in others)
