"""A registry that is away, wrong or without the subject is told in bounded time."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme
from tests.servers.kafka import Cluster
from tests.servers.registry import Schemas, record

from millstream.clients.registered_schemas import Schema
from millstream.clients.schema_registry import SchemaRegistry
from millstream.connectors.kafka import registry as options
from millstream.errors import RunError, TemporaryError

Rows = list[dict[str, Any]]


class _Answers(BaseHTTPRequestHandler):
    """Answers with what is next in the list, again and again with the last."""

    answers: list[tuple[int, bytes]] = []
    seen: list[str] = []

    def do_GET(self) -> None:
        self.seen.append(self.headers.get("Authorization", ""))
        status, body = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        return


@pytest.fixture
def pretender() -> Iterator[Callable[..., str]]:
    server = HTTPServer(("127.0.0.1", 0), _Answers)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()

    def answering(*answers: tuple[int, bytes]) -> str:
        _Answers.answers, _Answers.seen = list(answers), []
        return f"http://127.0.0.1:{server.server_port}"

    yield answering
    server.shutdown()
    thread.join()
    server.server_close()


def test_what_may_pass_is_tried_again(pretender: Callable[..., str]) -> None:
    url = pretender((503, b""), (500, b"{}"), (200, b"[2, 1]"))
    assert SchemaRegistry((url,), "me", "secret").versions("s") == [1, 2]
    assert _Answers.seen == ["Basic bWU6c2VjcmV0"] * 3


def test_the_second_address_helps_when_the_first_is_away(pretender: Callable[..., str]) -> None:
    assert SchemaRegistry(("http://127.0.0.1:9", pretender((200, b"[]")))).subjects() == []


def test_a_registry_that_is_away_is_told_with_every_address_in_bounded_time() -> None:
    began = time.monotonic()
    with pytest.raises(TemporaryError) as failed:
        SchemaRegistry(("http://127.0.0.1:9", "http://127.0.0.1:10"), seconds=1).subjects()
    (found,) = failed.value.diagnostics
    assert time.monotonic() - began < 15
    assert found.code == "MS100"
    assert found.detail.splitlines() == ["http://127.0.0.1:9: connection refused", "http://127.0.0.1:10: connection refused"]


@pytest.mark.parametrize("answer", [(404, b"<html>not found</html>"), (200, b"<html>hello</html>")])
def test_an_address_of_something_else_is_told_at_once(pretender: Callable[..., str], answer: tuple[int, bytes]) -> None:
    url = pretender(answer)
    with pytest.raises(RunError) as failed:
        SchemaRegistry((url,)).version("s")
    (found,) = failed.value.diagnostics
    assert (found.code, len(_Answers.seen)) == ("MS101", 1)
    assert url in found.message


def test_a_registry_behind_tls_is_trusted_by_the_given_authority_alone(tmp_path: Path) -> None:
    authority = trustme.CA()
    trusted = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(trusted)
    server = HTTPServer(("127.0.0.1", 0), _Answers)
    server.socket = trusted.wrap_socket(server.socket, server_side=True)
    _Answers.answers = [(200, b'["s"]')]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        url = f"https://127.0.0.1:{server.server_port}"
        assert SchemaRegistry((url,), ca=authority.cert_pem.bytes().decode()).subjects() == ["s"]
        with pytest.raises(TemporaryError, match="certificate verify failed"):
            SchemaRegistry((url,), seconds=0.5).subjects()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_wrong_password_is_told_at_once(pretender: Callable[..., str]) -> None:
    with pytest.raises(RunError, match="refuses access"):
        SchemaRegistry((pretender((401, b"")),)).subjects()


@pytest.mark.spark
def test_the_real_one_answers_what_is_asked(registry: Schemas) -> None:
    client, schema = registry.client, Schema('{"type": "record", "name": "Asked", "fields": [{"name": "a", "type": "long"}]}')
    id_ = client.register("asked", schema)
    assert client.register("asked", schema) == id_
    assert client.versions("asked") == [1]
    found = client.version("asked")
    assert found is not None and (found.id, found.version) == (id_, 1)
    assert client.schema(id_) == found.schema
    assert client.schema(77_777) is None
    assert client.versions("nobody") == [] and client.version("nobody") is None


@pytest.mark.spark
def test_a_first_start_without_the_registry_ends_with_its_address(
    kafka: Cluster, read: Callable[..., Rows], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options, "SECONDS", 1)
    with pytest.raises(RunError) as failed:
        read(f"topic: {kafka.topic()}, schema_registry: 'http://127.0.0.1:9'")
    (found,) = failed.value.diagnostics
    assert (found.code, type(failed.value)) == ("MS100", RunError)
    assert "http://127.0.0.1:9" in found.message


@pytest.mark.spark
def test_a_subject_that_is_not_there_is_told_with_the_nearest(kafka: Cluster, registry: Schemas, read: Callable[..., Rows]) -> None:
    topic = kafka.topic()
    registry.register(f"{topic}-valu", record(("id", "long")))
    with pytest.raises(RunError, match=f"has no subject `{topic}-value`(.|\n)*did you mean `{topic}-valu`"):
        read(f"topic: {topic}, schema_registry: '{registry.url}'")


CHECKED = """
sources:
  m: {{type: kafka, bootstrap_servers: "127.0.0.1:9", topic: {topic}, schema_registry: "{url}"}}
transforms:
  t: {{type: sql, sql: SELECT nmae FROM m}}
sinks:
  out: {{type: blackhole, from: t}}
"""


def test_a_check_warns_about_columns_that_nobody_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began, answer = time.monotonic(), _checked(CHECKED.format(topic="t", url="http://127.0.0.1:9"), tmp_path, monkeypatch)
    assert time.monotonic() - began < 60
    assert [finding["code"] for finding in answer["warnings"]] == ["MS106"]
    assert (answer["errors"], list(tmp_path.iterdir())) == ([], [tmp_path / "p.yaml"])


@pytest.mark.spark
def test_a_check_asks_the_registry_for_columns(registry: Schemas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.register("checked-value", record(("name", "string")))
    answer = _checked(CHECKED.format(topic="checked", url=registry.url), tmp_path, monkeypatch)
    (found,) = answer["errors"]
    assert (found["code"], "did you mean `name`" in found["help"]) == ("MS024", True)


def _checked(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    from typer.testing import CliRunner

    from millstream.cli import application

    monkeypatch.chdir(folder)
    (folder / "p.yaml").write_text(text)
    return json.loads(CliRunner().invoke(application("check"), ["check", "p.yaml", "--format", "json"]).stdout)
