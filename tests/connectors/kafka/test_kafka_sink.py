"""Rows become messages: keys, values, headers, partitions, order."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.servers.kafka import Cluster

from millstream.errors import MillstreamError
from millstream.observe.report import Report
from millstream.plan.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
TEXT = """
    connections: {{kafka: {{bootstrap_servers: "{address}"}}}}
    sources:
      m: {{type: kafka, topic: {topic}, format: json, mode: {{type: bounded}}, schema: {{k: string, n: int64, t: string}}}}
    transforms:
      rows: {{type: sql, sql: "{sql}"}}
    sinks:
      out: {{type: kafka, from: rows, topic: {target}, {options}}}{sinks}
"""
ROWS = [{"k": f"k{n % 7}", "n": n, "t": "x"} for n in range(60)]


@pytest.fixture
def sent(kafka: Cluster, pipeline: Callable[..., Topology], run: Callable[..., Report]) -> Callable[..., list[Any]]:
    """Run rows through a pipeline, and give the messages that arrive."""

    def go(options: str, sql: str = "SELECT * FROM m", target: str = "", rows: list[Any] = ROWS, sinks: str = "") -> list[Any]:
        topic, target = kafka.topic(), target or kafka.topic(3)
        kafka.send(topic, rows)
        run(pipeline(TEXT.format(address=kafka.address, topic=topic, target=target, options=options, sql=sql, sinks=sinks)))
        return kafka.messages(target)

    return go


def test_rows_arrive_as_json_with_their_key_in_order(sent: Callable[..., list[Any]]) -> None:
    messages = sent("key: k")
    assert sorted(json.loads(message.value())["n"] for message in messages) == list(range(60))
    assert all(json.loads(message.value())["k"] == message.key().decode() for message in messages)
    for key in {message.key() for message in messages}:
        numbers = [json.loads(message.value())["n"] for message in messages if message.key() == key]
        assert numbers == sorted(numbers)


def test_keys_go_to_the_partitions_that_java_clients_choose(sent: Callable[..., list[Any]], spark: SparkSession) -> None:
    murmur = spark._jvm.org.apache.kafka.common.utils.Utils
    for message in sent("key: [k, n]"):
        assert message.partition() == murmur.toPositive(murmur.murmur2(bytearray(message.key()))) % 3


def test_headers_are_texts_and_columns(sent: Callable[..., list[Any]]) -> None:
    (message,) = sent("key: k, headers: {app: shop, trace: {column: t}}", rows=ROWS[:1])
    assert dict(message.headers()) == {"app": b"shop", "trace": b"x"}
    assert json.loads(message.value()) == {"k": "k0", "n": 0}


def test_rows_of_a_changelog_go_in_the_order_of_their_source(sent: Callable[..., list[Any]]) -> None:
    messages = sent("key: t, value: [n], lanes: 2", "SELECT k, n, t, 60 - n AS _seq, 'u' AS _op FROM m")
    assert [json.loads(message.value())["n"] for message in messages] == list(range(59, -1, -1))


@pytest.mark.parametrize("op", ["_op", "_gs_op"])
def test_deletes_are_tombstones(sent: Callable[..., list[Any]], op: str) -> None:
    messages = sent("key: k", f"SELECT k, n, if(n = 1, 'd', 'i') AS {op} FROM m", rows=ROWS[:2])
    assert {message.key(): message.value() for message in messages} == {b"k0": b'{"k":"k0","n":0}', b"k1": None}
    assert {message.key(): dict(message.headers()) for message in messages} == {b"k0": {"dbz.op": b"c"}, b"k1": {"dbz.op": b"d"}}


@pytest.mark.parametrize(
    ("options", "values"),
    [
        ("format: string, value: n", {b"0", b"1"}),
        ("format: bytes, value: k", {b"k0", b"k1"}),
        ("format: csv", {b"k0,0,x", b"k1,1,x"}),
        ("value: [n], guarantee: at_least_once", {b'{"n":0}', b'{"n":1}'}),
    ],
)
def test_formats(sent: Callable[..., list[Any]], options: str, values: set[bytes]) -> None:
    assert {message.value() for message in sent(options, rows=ROWS[:2])} == values


def test_a_missing_topic_is_created(kafka: Cluster, sent: Callable[..., list[Any]]) -> None:
    options = "key: k, create: {partitions: 2, config: {cleanup.policy: compact}}"
    assert len(sent(options, target="made-here", rows=ROWS[:5])) == 5
    assert len(kafka.admin.list_topics("made-here").topics["made-here"].partitions) == 2


def test_a_missing_topic_is_an_error_without_create(sent: Callable[..., list[Any]]) -> None:
    with pytest.raises(MillstreamError) as caught:
        sent("key: k", target="not-here")
    assert caught.value.diagnostics[0].code == "MS091"


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_a_message_too_large_goes_to_the_dead_letters(sent: Callable[..., list[Any]], tmp_path: Path, guarantee: str) -> None:
    sql = "SELECT k, n, repeat('x', if(n = 3, 2000000, 1)) AS t FROM m"
    letters = "\n      letters: {type: file, path: letters, format: json}"
    messages = sent(f"key: k, guarantee: {guarantee}, on_error: {{dead_letter: letters}}", sql, sinks=letters)
    assert sorted(json.loads(message.value())["n"] for message in messages) == [n for n in range(60) if n != 3]
    (letter,) = [json.loads(line) for file in (tmp_path / "letters").glob("*.json") for line in file.read_text().splitlines()]
    assert (letter["node"], json.loads(letter["raw"])["n"]) == ("out", 3)
    assert "too large, key k3; the limit is" in letter["error"]


def test_a_message_too_large_says_which(sent: Callable[..., list[Any]]) -> None:
    sql = "SELECT k, n, repeat('x', if(n = 3, 2000000, 1)) AS t FROM m"
    with pytest.raises(MillstreamError) as caught:
        sent("key: k", sql)
    assert caught.value.diagnostics[0].code == "MS097"
    assert "key k3" in caught.value.diagnostics[0].message
