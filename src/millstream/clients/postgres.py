"""Connects to Postgres and classifies its errors.

Two clients share one address: psycopg for statements, ADBC for whole Arrow batches (binary COPY). Errors are classified by SQLSTATE:
temporary ones (network, deadlock, serialization, too many connections, a starting server, a read-only replica) are a `TemporaryError` and
are retried; all others stop at once.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from millstream.clients.hosts import is_loopback
from millstream.errors import Diagnostic, MillstreamError, RunError, SetupError, TemporaryError
from millstream.secrets import Secret, TextOrSecret
from millstream.units import Duration

if TYPE_CHECKING:
    import psycopg

NAME_BYTES = 63
"""Postgres silently truncates longer names."""
_PASSING = ("08", "40001", "40P01", "53", "55P03", "57P", "57014", "25006", "58")
_REFUSALS = (
    "authentication failed",
    "does not exist",
    "no pg_hba.conf entry",
    "does not support SSL",
    "certificate",
    "no password supplied",
    "not permitted to log in",
    "SSL error",
    "invalid value for parameter",
)
_STREAMED = "[libpq] Execution error"
"""ADBC's messages for an error while batches are fetched: an OSError or an Arrow error, without an SQLSTATE."""
SslMode = Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]


class PostgresOptions(BaseModel):
    """The connection options of every component that uses Postgres."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str = "localhost"
    """The server; of several, as `one,two`, the first that answers, and for sinks the one that accepts writes."""
    port: int = Field(5432, ge=1, le=65535)
    """Its port."""
    database: str = ""
    """The database. **Required**, here or in the connection."""
    user: TextOrSecret = ""
    """The user. Default: the one that runs the pipeline."""
    password: Secret | None = None
    """The password, as `secret://env/NAME` or `secret://file/PATH`."""
    sslmode: SslMode = "prefer"
    """Encryption, with Postgres' values: `require` encrypts, `verify-ca` also checks the certificate, `verify-full` its host too."""
    ssl_root_cert: Path | None = None
    """A PEM file with the authorities that sign the server's certificate."""
    ssl_cert: Path | None = None
    """A PEM file with the client's own certificate."""
    ssl_key: Path | None = None
    """A PEM file with the certificate's private key."""
    connect_timeout: Duration = Duration("10s")
    """How long to wait for the server to answer."""
    statement_timeout: Duration = Duration("5m")
    """How long one statement may take."""
    search_path: str = ""
    """Schemas in which names are looked up, as `app, public`."""

    @property
    def exposed(self) -> str:
        encrypted = self.sslmode not in {"disable", "allow", "prefer"}
        return "" if encrypted or self.password is None or all(is_loopback(host) for host in self.host.split(",")) else "sslmode"

    def address(self) -> Address:
        """The address with secrets revealed, so that it can be pickled to the workers."""
        files = {"sslrootcert": self.ssl_root_cert, "sslcert": self.ssl_cert, "sslkey": self.ssl_key}
        parts = {
            "host": self.host,
            "port": str(self.port),
            "dbname": self.database,
            "user": self.user.reveal() if isinstance(self.user, Secret) else self.user,
            "password": self.password.reveal() if self.password else "",
            "sslmode": self.sslmode,
            "connect_timeout": str(max(2, round(self.connect_timeout.seconds))),
            **{name: str(path) for name, path in files.items() if path},
        }
        settings = {"statement_timeout": str(self.statement_timeout.milliseconds), "search_path": self.search_path, "TimeZone": "UTC"}
        return Address({name: part for name, part in parts.items() if part}, {name: text for name, text in settings.items() if text})


@dataclass(frozen=True)
class Address:
    """A server, a database and a login. Its text never shows the password."""

    parts: dict[str, str] = field(repr=False)
    """libpq's parameters."""
    settings: dict[str, str] = field(default_factory=dict)
    """Set in every session."""

    def __str__(self) -> str:
        return f"{self.parts['host']}:{self.parts['port']}/{self.parts.get('dbname', '')}"

    def to(self, **parts: str) -> Address:
        """The same with other parameters."""
        return replace(self, parts={**self.parts, **parts})

    @property
    def text(self) -> str:
        """A connection string."""
        options = " ".join(f"-c {name}={_escape(value)}" for name, value in self.settings.items())
        return " ".join(
            f"{name}={_quote_value(part)}" for name, part in {**self.parts, "options": options, "application_name": "millstream"}.items()
        )


def require_client() -> None:
    """Require the packages of the Postgres clients."""
    for module, package in (("psycopg", "psycopg"), ("adbc_driver_postgresql", "adbc-driver-postgresql")):
        if importlib.util.find_spec(module) is None:
            message = f"Postgres needs the package `{package}`"
            raise SetupError(Diagnostic("MS045", message, help="`pip install 'millstream[postgres]'`, here and on the workers"))


@contextmanager
def open_connection(address: Address, autocommit: bool = False) -> Iterator[psycopg.Connection[Any]]:
    """A connection that is closed at the end; without `autocommit` the body is one transaction. Errors become diagnostics."""
    connection = connect(address, autocommit)
    with translate_errors(address), connection:
        yield connection


def connect(address: Address, autocommit: bool = False) -> psycopg.Connection[Any]:
    import psycopg

    require_client()
    with translate_errors(address):
        return psycopg.connect(address.text, autocommit=autocommit)


@contextmanager
def arrow(address: Address) -> Iterator[Any]:
    """An ADBC connection for Arrow batches. Uncommitted work is rolled back at the end."""
    import adbc_driver_postgresql.dbapi as adbc

    require_client()
    with translate_errors(address), adbc.connect(address.text) as connection:
        yield connection


@contextmanager
def translate_errors(address: Address) -> Iterator[None]:
    """Translate the clients' errors into ours."""
    try:
        yield
    except MillstreamError:
        raise
    except Exception as error:
        if not _foreign(error):
            raise
        raise translate_error(error, address) from error


def translate_error(error: Exception, address: Address) -> MillstreamError:
    """Translate a client's error."""
    text = first_line(error)
    state = state_of(error)
    if not state and (why := next((each for each in _REFUSALS if each in str(error)), "")):
        help_ = "" if "SSL" not in why else "`sslmode: disable` turns encryption off"
        return RunError(
            Diagnostic("MS111", f"Postgres at `{address}` refuses the login: {text}", help=help_ or "check user, password and database")
        )
    if not state and _STREAMED in str(error):
        return TemporaryError(Diagnostic("MS112", f"Postgres at `{address}` closed the connection during an answer: {text}"))
    if not state:
        return TemporaryError(Diagnostic("MS110", f"Postgres at `{address}` cannot be reached: {text}", help="check host and port"))
    if is_temporary(state):
        return TemporaryError(Diagnostic("MS112", f"Postgres at `{address}` is temporarily unable: {text} ({state})"))
    return RunError(Diagnostic("MS113", f"Postgres at `{address}` refuses: {text} ({state})", detail=_detail(error)))


def is_temporary(state: str) -> bool:
    """Whether an error of this SQLSTATE is temporary."""
    return state.startswith(_PASSING)


def state_of(error: BaseException) -> str:
    """The SQLSTATE; empty where there is none: the connection itself failed."""
    state = str(getattr(error, "sqlstate", None) or "")
    return "" if state.strip("\0") == "" else state


def first_line(error: BaseException) -> str:
    """The error's sentence, without the text that clients add."""
    text = next((line for line in str(error).strip().splitlines() if line), type(error).__name__)
    for mark in ("FATAL:  ", "ERROR:  ", "failed: ", "connect: "):
        text = text.rpartition(mark)[2] or text
    return text.strip().rstrip(".")


def quote_name(*parts: str) -> str:
    """A quoted name, or a quoted name in a schema."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts if part)


def literal(text: str) -> str:
    """A quoted string constant."""
    return "'" + text.replace("'", "''") + "'"


def _foreign(error: Exception) -> bool:
    """Whether the server or the network caused the error. A statement that was never sent is a bug of ours."""
    if type(error).__name__ == "ProgrammingError" and not state_of(error):
        return False
    return type(error).__module__.partition(".")[0] in {"psycopg", "adbc_driver_manager"} or _STREAMED in str(error)


def _detail(error: Exception) -> str:
    diagnostic = getattr(error, "diag", None)
    found = [getattr(diagnostic, name, None) for name in ("message_detail", "context", "message_hint")]
    return "\n".join(str(text) for text in found if text)


def _quote_value(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace(" ", "\\ ")
