"""Every way to log in, both ways: a message is read from a secured broker and written back to it; what is refused is told."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from confluent_kafka.admin import AclOperation
from tests.servers.secured import PASSWORD, USER, Secured

from millstream.errors import MillstreamError, RunError
from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
TEXT = """
    connections: {{kafka: {{bootstrap_servers: "{address}", security: {security}}}}}
    sources:
      orders: {{type: kafka, topic: {source}, format: json, schema: {{id: int64}}, mode: {{type: bounded}}}}
    sinks:
      out: {{type: kafka, from: orders, topic: {target}, key: [id]}}
"""
LOGIN = "protocol: SASL_SSL, username: svc, password: secret://env/KAFKA_PASSWORD, ca: {ca}"
WAYS = {
    "SSL": ("SSL", "{{protocol: SSL, ca: {ca}, certificate: {certificate}, key: {key}}}"),
    "PLAIN": ("LOGIN", "{{mechanism: PLAIN, " + LOGIN + "}}"),
    "SCRAM-SHA-256": ("LOGIN", "{{mechanism: SCRAM-SHA-256, " + LOGIN + "}}"),
    "SCRAM-SHA-512": ("LOGIN", "{{mechanism: SCRAM-SHA-512, " + LOGIN + "}}"),
    "OAUTHBEARER": (
        "TOKEN",
        "{{protocol: SASL_PLAINTEXT, mechanism: OAUTHBEARER, username: svc, password: secret://env/KAFKA_PASSWORD, token_url: '{url}'}}",
    ),
}


@pytest.fixture
def go(
    secured: Secured, pipeline: Callable[..., Topology], run: Callable[..., Report], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    """Copy one message with a way to log in; the name of the topic that should hold it."""

    def copy(way: str, password: str = PASSWORD, allowed: tuple[AclOperation, ...] = (AclOperation.ALL,), key: str = "client.key") -> str:
        monkeypatch.setenv("KAFKA_PASSWORD", password)
        listener, security = WAYS[way]
        files = {name: secured.folder / file for name, file in (("ca", "ca.pem"), ("certificate", "client.pem"), ("key", key))}
        source, target = secured.topic(), secured.topic()
        for topic in (source, target):
            secured.allow(topic, *allowed, principal="User:*")
        secured.send(source, [{"id": 1}])
        options = {"address": secured.addresses[listener], "source": source, "target": target}
        run(pipeline(TEXT.format(**options, security=security.format(**files, url=secured.token_url))))
        return target

    return copy


@pytest.mark.parametrize("way", WAYS)
def test_a_message_goes_in_and_out(way: str, go: Callable[..., str], secured: Secured) -> None:
    assert [json.loads(message.value()) for message in secured.messages(go(way))] == [{"id": 1}]


@pytest.mark.parametrize("way", ["PLAIN", "SCRAM-SHA-512", "OAUTHBEARER"])
def test_a_wrong_password_is_told_and_not_shown(way: str, go: Callable[..., str]) -> None:
    with pytest.raises(RunError) as refused:
        go(way, password="open-barley-17")
    (finding,) = refused.value.diagnostics
    assert finding.code == "MS092"
    assert "open-barley-17" not in finding.render()


@pytest.mark.parametrize(("allowed", "what"), [((AclOperation.WRITE,), "read"), ((AclOperation.READ,), "write")])
def test_a_missing_permission_is_told(allowed: tuple[AclOperation, ...], what: str, go: Callable[..., str]) -> None:
    with pytest.raises(RunError) as refused:
        go("PLAIN", allowed=allowed)
    (finding,) = refused.value.diagnostics
    assert finding.code == "MS092"
    assert USER in finding.render() or "authoriz" in finding.render().lower()


def test_an_older_form_of_key_is_told_with_the_way_out(go: Callable[..., str]) -> None:
    with pytest.raises(MillstreamError) as refused:
        go("SSL", key="old.key")
    (finding,) = refused.value.diagnostics
    assert finding.code == "MS092"
    assert "openssl pkcs8" in finding.help
