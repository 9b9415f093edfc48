"""`millstream dev postgres`: an address to connect to, and nothing left behind, whichever way it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from millstream.dev.postgres import start_postgres
from millstream.errors import SetupError

pytestmark = pytest.mark.server


@contextmanager
def command(*words: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "millstream.cli", "dev", "postgres", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def gone(address: str) -> bool:
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        try:
            psycopg.connect(address, connect_timeout=2).close()
        except psycopg.OperationalError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_it_serves_until_it_is_ended(number: signal.Signals) -> None:
    with command("--port", "0") as process:
        assert process.stdout is not None and process.stderr is not None
        address = process.stdout.readline().strip()
        with psycopg.connect(address) as connection:
            connection.execute("CREATE TABLE t (id int)")
            assert connection.execute("SHOW wal_level").fetchone() == ("logical",)
        process.send_signal(number)
        said = process.stderr.read()
        assert number == signal.SIGKILL or ("is ready" in said and "stopped" in said)
        assert gone(address)


def test_a_port_that_is_taken_is_told() -> None:
    with start_postgres() as server, pytest.raises(SetupError, match=r"MS047.*cannot listen"):
        start_postgres(server.port)


def test_it_comes_back_with_its_data() -> None:
    with start_postgres() as server:
        with psycopg.connect(server.address.text) as connection:
            connection.execute("CREATE TABLE t AS SELECT 7 AS n")
        server.restart(signal.SIGQUIT)
        with psycopg.connect(server.address.text) as connection:
            assert connection.execute("SELECT n FROM t").fetchone() == (7,)
    assert not server.running and not server.scratch.path.exists()
