"""Real-time mode is refused, with the reason, wherever Spark cannot do it."""

from __future__ import annotations

import pytest

from millstream.spec.loader import loads

TEXT = """
connections: {{kafka: {{bootstrap_servers: "localhost:9092"}}}}
sources:
  orders: {{type: kafka, topic: orders, format: json, schema: {{id: int64, at: timestamp}}{source}}}
transforms:
  chosen: {transform}
sinks:
  out: {{{sink}, from: chosen}}
{more}
settings: {{trigger: {{type: real_time}}}}
"""
KAFKA = "type: kafka, topic: out, guarantee: at_least_once"
PLAIN = "{type: sql, sql: SELECT id FROM orders}"


def findings(source: str = "", transform: str = PLAIN, sink: str = KAFKA, more: str = "") -> list[tuple[str, str]]:
    loaded = loads(TEXT.format(source=source, transform=transform, sink=sink, more=more))
    return [(found.level, found.message) for found in (*loaded.errors, *loaded.warnings)]


def test_plain_kafka_to_kafka_is_possible() -> None:
    assert findings() == []


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"source": ", mode: {type: bounded}"}, "bounded"),
        ({"source": ", on_error: drop"}, "cannot be isolated"),
        ({"transform": "{type: sql, sql: 'SELECT id, count(*) AS n FROM orders GROUP BY id'}"}, "keeps state"),
        ({"sink": "type: file, path: out, format: json"}, "type `file` works on whole epochs"),
        ({"more": "  more: {type: kafka, topic: more, from: chosen}"}, "there can be one sink"),
        ({"sink": "type: kafka, topic: out, guarantee: exactly_once"}, "asks for `guarantee: exactly_once`"),
    ],
)
def test_what_cannot_run_is_refused(options: dict[str, str], reason: str) -> None:
    ((level, message),) = findings(**options)
    assert level == "error"
    assert reason in message


def test_a_guarantee_that_nobody_chose_is_told() -> None:
    ((level, message),) = findings(sink="type: kafka, topic: out")
    assert (level, message) == ("warning", "sink `out` is written at least once in real-time mode")


@pytest.mark.parametrize("every", ["1s", "0s"])
def test_too_short_an_epoch_is_refused(every: str) -> None:
    loaded = loads(TEXT.format(source="", transform=PLAIN, sink=KAFKA, more="").replace("real_time", f"real_time, every: {every}"))
    assert any("at least `5s`" in error.message for error in loaded.errors)
