"""A broker with users, permissions and certificates: one listener for each way to log in.

The token server is a stand-in, since no real one runs without a container: it signs tokens, and the broker checks them with its keys.
"""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import trustme
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from tests.servers.kafka import Cluster

from millstream.dev.kafka import start_broker
from millstream.dev.ports import HOST, free_port

USER, PASSWORD = "svc", "sesame-42"
_MODULES = "org.apache.kafka.common.security"
_LISTENERS = ("PLAINTEXT", "SSL", "LOGIN", "TOKEN")


@dataclass
class Secured(Cluster):
    """The broker, its addresses by listener, and the files of a client."""

    addresses: Mapping[str, str]
    folder: Path
    token_url: str

    def allow(self, topic: str, *operations: AclOperation, principal: str = f"User:{USER}") -> None:
        """What a user may do with a topic."""
        bindings = [
            AclBinding(ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, principal, "*", operation, AclPermissionType.ALLOW)
            for operation in operations
        ]
        for future in self.admin.create_acls(bindings).values():
            future.result(20)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("certificates")
    ports = {name: free_port() for name in _LISTENERS[1:]}
    listeners = tuple(f"{name}://{HOST}:{port}" for name, port in ports.items())
    users = tuple(f"--add-scram=SCRAM-SHA-{bits}=[name={USER},password={PASSWORD}]" for bits in (256, 512))
    with ExitStack() as stack:
        tokens = stack.enter_context(_tokens())
        stack.enter_context(_trusting(tokens))
        broker = stack.enter_context(start_broker(listeners=listeners, properties=_properties(folder, tokens), formatting=users))
        cluster = Secured(broker, {name: f"{HOST}:{port}" for name, port in ports.items()}, folder, f"{tokens}/token")
        _let_in(cluster)
        yield cluster


def _properties(folder: Path, tokens: str) -> dict[str, str]:
    plain = f'{_MODULES}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
    scram = f"{_MODULES}.scram.ScramLoginModule required;"
    token = f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required;"
    protocols = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,LOGIN:SASL_SSL,TOKEN:SASL_PLAINTEXT"
    return {
        "listener.security.protocol.map": protocols,
        **_certificates(folder),
        "ssl.client.auth": "requested",
        "listener.name.login.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.login.plain.sasl.jaas.config": plain,
        "listener.name.login.scram-sha-256.sasl.jaas.config": scram,
        "listener.name.login.scram-sha-512.sasl.jaas.config": scram,
        "listener.name.token.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.token.oauthbearer.sasl.jaas.config": token,
        "listener.name.token.oauthbearer.sasl.server.callback.handler.class": f"{_MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler",
        "sasl.oauthbearer.jwks.endpoint.url": f"{tokens}/keys",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }


@contextmanager
def _trusting(tokens: str) -> Iterator[None]:
    """A broker asks nobody for keys whom its JVM is not told to trust."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={tokens}/keys")
        yield


def _certificates(folder: Path) -> dict[str, str]:
    """One authority signs the broker and a client; all of it as PEM, which Kafka reads from one file each."""
    authority = trustme.CA()
    broker, client = authority.issue_cert(HOST), authority.issue_cert(HOST, common_name=USER)
    authority.cert_pem.write_to_path(folder / "ca.pem")
    (folder / "client.key").write_bytes(_pkcs8(client))
    (folder / "old.key").write_bytes(client.private_key_pem.bytes())
    (folder / "client.pem").write_bytes(b"".join(blob.bytes() for blob in client.cert_chain_pems))
    (folder / "broker.pem").write_bytes(_pkcs8(broker) + b"".join(blob.bytes() for blob in broker.cert_chain_pems))
    stores = {"ssl.keystore.type": "PEM", "ssl.keystore.location": f"{folder}/broker.pem"}
    return {**stores, "ssl.truststore.type": "PEM", "ssl.truststore.location": f"{folder}/ca.pem"}


def _pkcs8(certificate: trustme.LeafCert) -> bytes:
    """The private key in the form that Java reads."""
    key = serialization.load_pem_private_key(certificate.private_key_pem.bytes(), None)
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def _let_in(cluster: Secured) -> None:
    """Groups and transactions are everybody's; topics are for the tests to give."""
    everything = [
        AclBinding(kind, "*", ResourcePatternType.LITERAL, "User:*", "*", AclOperation.ALL, AclPermissionType.ALLOW)
        for kind in (ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
    ]
    for future in cluster.admin.create_acls(everything).values():
        future.result(20)


@contextmanager
def _tokens() -> Iterator[str]:
    """`/token` for those who know the password, `/keys` for the broker, which checks the signatures."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            user, _, password = base64.b64decode(self.headers["Authorization"].split()[1]).decode().partition(":")
            known = password == PASSWORD
            self._answer(200 if known else 401, {"access_token": _token(user, key), "expires_in": 3600} if known else {"error": "unknown"})

        def do_GET(self) -> None:
            numbers = key.public_key().public_numbers()
            public = {name: _base64(value.to_bytes((value.bit_length() + 7) // 8)) for name, value in (("n", numbers.n), ("e", numbers.e))}
            self._answer(200, {"keys": [{"kty": "RSA", "kid": "1", "alg": "RS256", "use": "sig", **public}]})

        def _answer(self, status: int, value: Mapping[str, object]) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(value).encode())

        def log_message(self, *words: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer((HOST, 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://{HOST}:{server.server_port}"
    server.shutdown()
    server.server_close()


def _token(user: str, key: rsa.RSAPrivateKey) -> str:
    now = int(time.time())
    claims = {"sub": user, "iat": now, "exp": now + 3600, "scope": "kafka"}
    text = ".".join(_base64(json.dumps(part).encode()) for part in ({"alg": "RS256", "kid": "1", "typ": "JWT"}, claims))
    return f"{text}.{_base64(key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
