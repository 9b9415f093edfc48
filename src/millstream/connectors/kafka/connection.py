"""The connection to a cluster: options of every Kafka component, from the node or from `connections`, and the client's properties.

Certificates are read here and passed as text: workers on other machines need no files.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, model_validator

from millstream.clients.hosts import is_loopback
from millstream.clients.kafka import KafkaAdmin, open_admin
from millstream.connectors.kafka.registry import RegistryComponent, read_text
from millstream.errors import Diagnostic, RunError, SetupError, TemporaryError
from millstream.plan.components import Problem
from millstream.secrets import Secret, TextOrSecret

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
_OAUTH_HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"


class KafkaSecurity(BaseModel):
    """Encryption and login."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """Kafka's `security.protocol`."""
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] | None = None
    """The login mechanism, for the protocols that begin with SASL."""
    username: TextOrSecret | None = None
    """The user; with OAUTHBEARER the client's id."""
    password: Secret | None = None
    """The password; with OAUTHBEARER the client's secret."""
    token_url: str | None = None
    """The address from which OAUTHBEARER gets its tokens."""
    scope: str | None = None
    """The scope that OAUTHBEARER requests."""
    ca: Path | None = None
    """A PEM file with the authorities that sign the brokers' certificates. Default: those of Java."""
    certificate: Path | None = None
    """A PEM file with the client's own certificate chain."""
    key: Path | None = None
    """A PEM file with the certificate's private key (PKCS#8)."""
    key_password: Secret | None = None
    """The key's password."""
    verify_hostname: bool = True
    """Whether a broker's certificate must name its host."""

    @model_validator(mode="after")
    def _complete(self) -> KafkaSecurity:
        if self.protocol.startswith("SASL") and (self.mechanism is None or self.username is None or self.password is None):
            raise ValueError(f"`{self.protocol}` needs `mechanism`, `username` and `password`")
        if self.mechanism and not self.protocol.startswith("SASL"):
            raise ValueError(f"`mechanism` goes with SASL_SSL or SASL_PLAINTEXT, not with {self.protocol}")
        if self.mechanism == "OAUTHBEARER" and not self.token_url:
            raise ValueError("`OAUTHBEARER` needs `token_url`")
        if (self.certificate is None) != (self.key is None):
            raise ValueError("`certificate` and `key` go together")
        return self

    def properties(self) -> dict[str, str]:
        """The Java client's properties, secrets revealed."""
        found: dict[str, str] = {"security.protocol": self.protocol}
        if self.mechanism:
            found |= {"sasl.mechanism": self.mechanism, "sasl.jaas.config": self._login()}
        if self.mechanism == "OAUTHBEARER":
            found |= {"sasl.oauthbearer.token.endpoint.url": self.token_url or "", "sasl.login.callback.handler.class": _OAUTH_HANDLER}
        if self.ca:
            found |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": read_text(self.ca)}
        if self.certificate and self.key:
            chain = {"ssl.keystore.certificate.chain": read_text(self.certificate), "ssl.keystore.key": _key(self.key)}
            found |= {"ssl.keystore.type": "PEM", **chain}
        if self.key_password:
            found["ssl.key.password"] = self.key_password.reveal()
        if not self.verify_hostname:
            found["ssl.endpoint.identification.algorithm"] = ""
        return found

    def native(self) -> dict[str, str]:
        """The same for librdkafka, which Python's client uses."""
        found: dict[str, str] = {"security.protocol": self.protocol}
        if self.mechanism == "OAUTHBEARER":
            found |= {"sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.token.endpoint.url": self.token_url or ""}
            found |= {"sasl.oauthbearer.client.id": _reveal(self.username), "sasl.oauthbearer.client.secret": _reveal(self.password)}
            found |= {"sasl.oauthbearer.scope": self.scope} if self.scope else {}
        elif self.mechanism:
            found |= {"sasl.username": _reveal(self.username), "sasl.password": _reveal(self.password)}
        if self.mechanism:
            found["sasl.mechanism"] = self.mechanism
        if self.ca:
            found["ssl.ca.pem"] = read_text(self.ca)
        if self.certificate and self.key:
            found |= {"ssl.certificate.pem": read_text(self.certificate), "ssl.key.pem": read_text(self.key)}
        if self.key_password:
            found["ssl.key.password"] = self.key_password.reveal()
        if not self.verify_hostname:
            found["ssl.endpoint.identification.algorithm"] = "none"
        return found

    def _login(self) -> str:
        names = ("clientId", "clientSecret") if self.mechanism == "OAUTHBEARER" else ("username", "password")
        values = (_reveal(self.username), _reveal(self.password))
        words = [f"{name}={_quote(value)}" for name, value in zip(names, values, strict=True)]
        words += [f"scope={_quote(self.scope)}"] if self.scope else []
        return f"{_MODULES[self.mechanism or 'PLAIN']} required {' '.join(words)};"


class KafkaComponent(RegistryComponent):
    """The common part of the source and the sink."""

    type: ClassVar[str] = "kafka"
    extra: ClassVar[str] = "kafka"
    connects: ClassVar[bool] = True
    real_time: ClassVar[bool] = True

    bootstrap_servers: str = ""
    """The brokers, as `host:port, host:port`. **Required**, here or in the connection."""
    security: KafkaSecurity = KafkaSecurity()
    """Encryption and login."""

    def client(self) -> dict[str, str]:
        """Properties of the Java client."""
        return {"bootstrap.servers": self.bootstrap_servers.replace(" ", ""), **self.security.properties()}

    def native_client(self) -> dict[str, str]:
        """Properties of librdkafka."""
        return {"bootstrap.servers": self.bootstrap_servers.replace(" ", ""), **self.security.native()}

    @property
    def exposed(self) -> str:
        hosts = [server.rpartition(":")[0] for server in self.bootstrap_servers.split(",")]
        return "security" if self.security.protocol == "SASL_PLAINTEXT" and not all(is_loopback(host) for host in hosts) else ""

    @contextmanager
    def open_admin(self, spark: SparkSession, known: bool) -> Iterator[KafkaAdmin]:
        """An admin client. If the cluster has never answered, its address is wrong: that is not a temporary failure."""
        try:
            with open_admin(spark._jvm, self.client()) as admin:
                yield admin
        except TemporaryError as error:
            raise error if known else RunError(error.diagnostics) from None

    def missing(self) -> list[Problem]:
        """Required options that are missing."""
        if self.bootstrap_servers.strip():
            return []
        help_ = "give it here, or for all nodes under `connections: {kafka: {bootstrap_servers: …}}`"
        return [Problem("MS007", "a Kafka node needs `bootstrap_servers`", help=help_)]


def _key(path: Path) -> str:
    """A private key in PKCS#8, the only form that Java reads; its messages about other forms are unclear."""
    text = read_text(path)
    if "BEGIN RSA PRIVATE KEY" in text or "BEGIN EC PRIVATE KEY" in text:
        help_ = f"`openssl pkcs8 -topk8 -nocrypt -in {path.name} -out {path.stem}.pkcs8.pem` converts it"
        raise SetupError(Diagnostic("MS092", f"the private key in `{path}` is not in PKCS#8", help=help_))
    return text


def _reveal(value: str | Secret | None) -> str:
    return value.reveal() if isinstance(value, Secret) else value or ""


def _quote(value: str) -> str:
    """A quoted value in the login module's syntax."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
