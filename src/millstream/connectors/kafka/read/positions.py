"""Positions in topics: the beginning, the end, a time, or an offset for each partition; and the end of a bounded source.

A position is stored as written, and becomes offsets when the cluster is asked. The end of a bounded source is determined once, at the first
start, and pinned in the checkpoint: Spark's own end moves with every start.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from millstream.clients.kafka import KafkaAdmin, Offsets, Topic
from millstream.clients.storage import Storage
from millstream.errors import Diagnostic, RunError

_MARKS = {"earliest": -2, "latest": -1}
_ENDS = "ends.json"


def _check(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str):
        moment(value)
    for place in _leaves(value) if isinstance(value, Mapping) else ():
        if not (isinstance(place, int) and place >= 0) and place not in _MARKS:
            text = "an offset is a whole number, `earliest` or `latest`, not `{place}`"
            raise PydanticCustomError("position", text, {"place": str(place)})
    return value


def _leaves(value: Mapping[Any, Any]) -> list[Any]:
    return [leaf for part in value.values() for leaf in (part.values() if isinstance(part, Mapping) else [part])]


_SHAPES = {"anyOf": [{"type": "string"}, {"type": "object"}]}
Position = Annotated[str | dict[str, Any], BeforeValidator(_check), WithJsonSchema(_SHAPES)]
"""`earliest`, `latest`, a time such as `2026-01-01T00:00:00Z`, or offsets by partition: `{0: 100, 1: latest}`, `{topic: {0: 100}}`."""


def moment(text: str) -> int | None:
    """Milliseconds since 1970; None for `earliest` and `latest`."""
    if text in _MARKS:
        return None
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        sentence = "`{text}` is not one of `earliest`, `latest`, a time such as `2026-01-01T00:00:00Z`, or offsets by partition"
        raise PydanticCustomError("position", sentence, {"text": text}) from None
    return round((parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp() * 1000)


def start_options(position: str | dict[str, Any], topics: Mapping[str, Topic]) -> dict[str, str]:
    """Spark's options for the start. Other partitions begin at their first message."""
    if isinstance(position, str):
        at = moment(position)
        if at is None:
            return {"startingOffsets": position}
        return {"startingTimestamp": str(at), "startingOffsetsByTimestampStrategy": "latest"}
    given = _by_topic(position, topics)
    full = {
        name: {str(part): _number(given.get(name, {}).get(str(part), "earliest")) for part in range(topic.partitions)}
        for name, topic in topics.items()
    }
    return {"startingOffsets": json.dumps(full)}


def pinned_ends(storage: Storage) -> Offsets | None:
    """The end of a bounded source, once it is decided."""
    data = storage.read(_ENDS)
    return None if data is None else {topic: {int(p): int(o) for p, o in parts.items()} for topic, parts in json.loads(data).items()}


def pin_ends(storage: Storage, admin: KafkaAdmin, topics: Mapping[str, Topic], until: str | dict[str, Any], node: str) -> Offsets:
    """Decide where the source ends, unless an earlier start has."""
    if (known := pinned_ends(storage)) is None:
        storage.put_once(_ENDS, json.dumps(_ends(admin, topics, until, node)).encode())
        known = pinned_ends(storage)
    assert known is not None
    return known


def _ends(admin: KafkaAdmin, topics: Mapping[str, Topic], until: str | dict[str, Any], node: str) -> Offsets:
    latest = admin.offsets(topics.values(), "latest")
    if until == "latest":
        return latest
    if isinstance(until, str):
        return _at(admin, topics, moment(until), until, node)
    given = _by_topic(until, topics)
    ends = {topic: {p: given.get(topic, {}).get(str(p), end) for p, end in parts.items()} for topic, parts in latest.items()}
    ends = {topic: {p: latest[topic][p] if end == "latest" else int(end) for p, end in parts.items()} for topic, parts in ends.items()}
    for topic, parts in ends.items():
        for partition, end in parts.items():
            if end > latest[topic][partition]:
                message = f"`{node}`: `until` says offset {end}, and partition {partition} of `{topic}` ends at {latest[topic][partition]}"
                raise RunError(Diagnostic("MS093", message, help="a bounded source reads what is there at its first start"))
    return ends


def _at(admin: KafkaAdmin, topics: Mapping[str, Topic], at: int | None, text: str, node: str) -> Offsets:
    if at is None or at > datetime.now(UTC).timestamp() * 1000:
        message = f"`{node}`: `until: {text}` cannot be the end of a bounded source"
        raise RunError(Diagnostic("MS093", message, help="use `latest`, offsets, or a time that has passed"))
    return admin.offsets(topics.values(), at)


def _by_topic(position: dict[str, Any], topics: Mapping[str, Topic]) -> dict[str, dict[str, Any]]:
    """Offsets by topic; with one topic its name may be omitted."""
    if any(isinstance(part, Mapping) for part in position.values()):
        return {topic: {str(k): v for k, v in parts.items()} for topic, parts in position.items()}
    return {name: {str(k): v for k, v in position.items()} for name in topics}


def _number(place: Any) -> int:
    return _MARKS[place] if isinstance(place, str) else int(place)
