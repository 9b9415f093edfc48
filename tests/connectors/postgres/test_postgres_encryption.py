"""TLS in all of its modes, against a server with a certificate of a test's own authority."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from millstream.clients.postgres import PostgresOptions, arrow, open_connection
from millstream.dev.postgres import NAME, Postgres, start_postgres
from millstream.errors import RunError

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Postgres, Path]]:
    folder = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    trustme.CA().cert_pem.write_to_path(folder / "other.pem")
    issued = authority.issue_cert("localhost")
    with start_postgres() as server:
        if "with-openssl" not in server.configured and "with-ssl" not in server.configured:
            pytest.skip("this Postgres was built without TLS")
        server.give("server.key", issued.private_key_pem.bytes())
        server.give("server.crt", b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        server.settings = ("ssl=on",)
        server.restart()
        yield server, folder


def options(server: Postgres, **more: object) -> PostgresOptions:
    plain = {"host": "localhost", "port": server.port, "database": NAME, "user": NAME, "password": NAME}
    return PostgresOptions.model_validate({**plain, **more})


@pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full"])
def test_it_is_encrypted(server: tuple[Postgres, Path], mode: str) -> None:
    address = options(server[0], sslmode=mode, ssl_root_cert=server[1] / "ca.pem").address()
    query = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
    with open_connection(address) as connection:
        assert connection.execute(query).fetchone() == (True,)
    with arrow(address) as connection, connection.cursor() as cursor:
        cursor.execute(query)
        assert cursor.fetchone() == (True,)


def test_another_authority_is_refused(server: tuple[Postgres, Path]) -> None:
    address = options(server[0], sslmode="verify-ca", ssl_root_cert=server[1] / "other.pem").address()
    with pytest.raises(RunError, match=r"MS111.*certificate"), open_connection(address):
        pass


def test_another_host_is_refused(server: tuple[Postgres, Path]) -> None:
    address = options(server[0], host="127.0.0.1", sslmode="verify-full", ssl_root_cert=server[1] / "ca.pem").address()
    with pytest.raises(RunError, match=r"MS111"), open_connection(address):
        pass
