"""What can be said about a Kafka source without a broker and without a JVM: `check` finds it all."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.connectors.conftest import opened

from millstream.connectors.kafka.connection import KafkaSecurity
from millstream.connectors.kafka.source import KafkaSource
from millstream.spec.loader import Loaded, load

PIPELINE = """
name: p
connections:
  kafka: {bootstrap_servers: "one:9092", security: {protocol: SASL_SSL, mechanism: PLAIN, username: svc, password: secret://env/PW}}
  other: {bootstrap_servers: "two:9092"}
sources:
  orders: {type: kafka, OPTIONS}
sinks:
  out: {type: blackhole, from: orders}
"""


@pytest.fixture
def loaded(tmp_path: Path) -> object:
    def go(options: str) -> Loaded:
        path = tmp_path / "p.yaml"
        path.write_text(PIPELINE.replace("OPTIONS", options))
        return load(path, environ={})

    return go


def test_the_connection_named_like_the_type_is_used(loaded) -> None:
    source = loaded("topic: t, format: string").require().node("orders").component
    assert source.bootstrap_servers == "one:9092"
    assert source.security.mechanism == "PLAIN"


def test_options_of_the_node_are_laid_over_those_of_its_connection(loaded) -> None:
    source = loaded("topic: t, format: string, bootstrap_servers: 'mine:1', security: {username: me}").require().node("orders").component
    assert source.bootstrap_servers == "mine:1"
    assert (source.security.username, source.security.protocol) == ("me", "SASL_SSL")


def test_another_connection_can_be_named(loaded) -> None:
    source = loaded("topic: t, format: string, connection: other").require().node("orders").component
    assert source.bootstrap_servers == "two:9092"
    assert source.security.protocol == "PLAINTEXT"


def test_a_mistake_in_a_connection_is_shown_where_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(PIPELINE.replace("OPTIONS", "topic: t, format: string").replace("PLAIN,", "PLAN,"))
    (error,) = load(path, environ={}).errors
    assert (error.code, error.span.line, error.help) == ("MS008", 4, "did you mean `PLAIN`?")


def test_the_secret_is_kept_as_a_reference_everywhere(loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PW", "hunter2")
    topology = loaded("topic: t, format: string").require()
    assert "hunter2" not in topology.to_yaml() + repr(topology)
    assert 'password="hunter2"' in topology.node("orders").component.client()["sasl.jaas.config"]


def test_a_password_that_was_written_out_does_not_come_out_again(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(PIPELINE.replace("OPTIONS", "topic: t, format: string").replace("secret://env/PW", "hunter2"))
    topology = load(path, environ={}).require()
    assert "hunter2" not in topology.to_yaml() + repr(topology.nodes)


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ("format: string", "MS007", "needs `topic`"),
        ("topic: t, topics: [u], format: string", "MS008", "exclude each other"),
        ("pattern: '(', format: string", "MS008", "regular expression"),
        ("topic: t, format: json", "MS007", "needs a `schema`"),
        ("topic: t, format: csv, schema: {a: 'list<string>'}", "MS008", "csv has no way"),
        ("topic: t, format: string, schema: {a: int64}", "MS008", "one column of type string"),
        ("topic: t, format: xml", "MS008", "cannot be `xml`"),
        ("topic: t, format: string, key: {value: string}", "MS008", "of the key and of the value"),
        ("topic: t, format: string, key_format: json", "MS008", "`key_format` needs `key`"),
        ("topic: t, format: string, filter: 'valu > 3'", "MS024", "unknown column `valu`"),
        ("topic: t, format: string, starting_offsets: soon", "MS008", "not one of `earliest`"),
        ("topic: t, format: string, starting_offsets: {0: -5}", "MS008", "whole number"),
        ("topic: t, format: string, consumer: {group.id: x}", "MS008", "cannot be set in `consumer`"),
        ("topic: t, format: csv, schema: {a: int64}, envelope: debezium", "MS008", "not csv"),
        ("topic: t, format: string, tombstones: delete", "MS008", "needs `key`"),
        ("topic: t, format: json, schema: {_op: string}, operation_header: dbz.op", "MS008", "adds `_op` itself"),
        ("topic: t, format: string, bootstrap_servers: ''", "MS007", "needs `bootstrap_servers`"),
    ],
)
def test_mistakes_have_one_clear_finding(loaded, options: str, code: str, words: str) -> None:
    (error,) = loaded(options).errors
    assert error.code == code
    assert words in error.message


def test_a_whole_source_passes(loaded) -> None:
    options = "topics: [a, b], data_format: json, schema: {id: int64}, key: {user: string}, starting_offsets: {a: {0: 5}}, "
    options += "include_metadata: true, max_rows_per_epoch: 10, min_rows: 5, mode: {type: bounded, until: 2026-01-01}, "
    options += "filter: \"id > 3 AND __kafka_topic = 'a'\""
    topology = loaded(options).require()
    assert topology.node("orders").component.output().names[:2] == ["user", "id"]
    assert topology.node("orders").component.extras() == ("kafka",)


@pytest.mark.parametrize(
    "options",
    [
        {"protocol": "SASL_SSL"},
        {"mechanism": "PLAIN", "username": "a", "password": "b"},
        {"protocol": "SASL_SSL", "mechanism": "OAUTHBEARER", "username": "a", "password": "b"},
        {"protocol": "SSL", "certificate": "a.pem"},
    ],
)
def test_half_a_login_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        KafkaSecurity.model_validate(options)


def test_a_password_may_hold_quotes() -> None:
    security = KafkaSecurity(protocol="SASL_SSL", mechanism="SCRAM-SHA-256", username="a", password='x"\\y')
    assert security.properties()["sasl.jaas.config"].endswith('username="a" password="x\\"\\\\y";')


def test_certificates_travel_as_text(tmp_path: Path) -> None:
    for name in ("ca", "cert", "key"):
        (tmp_path / name).write_text(f"-- {name} --")
    files = {"ca": tmp_path / "ca", "certificate": tmp_path / "cert", "key": tmp_path / "key"}
    found = KafkaSecurity(protocol="SSL", verify_hostname=False, **files).properties()
    assert found["ssl.truststore.certificates"] == "-- ca --"
    assert (found["ssl.keystore.certificate.chain"], found["ssl.keystore.key"]) == ("-- cert --", "-- key --")
    assert found["ssl.endpoint.identification.algorithm"] == ""


def test_the_least_of_several_readers_is_what_all_have_read() -> None:
    source = KafkaSource(topic="t", format="string")
    assert opened(source).common_offset(['{"t":{"0":5,"1":9}}', {"t": {"0": 7, "1": 2}}]) == {"t": {"0": 5, "1": 2}}
    assert opened(source).common_offset([{"t": {"0": 5, "1": 9}}, {"t": {"0": 7}}]) == {"t": {"0": 5}}
    assert opened(source).common_offset([{"t": {"0": 5}}]) == {"t": {"0": 5}}
