"""The runs of this machine and user: a folder with a socket and a note for each of them.

The folder and the sockets are their owner's alone; whoever can open the socket may give orders. A note whose process has died is removed by
whoever finds it.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import tempfile
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from millstream.errors import Diagnostic, SetupError, UsageError, nearest


@dataclass(frozen=True, slots=True)
class Registration:
    """A run that can be asked."""

    name: str
    process: int
    run: str
    checkpoint: str
    began: float
    socket: str
    url: str = ""
    """The address of its page, if it has one."""


def folder_of(environ: Mapping[str, str]) -> Path:
    """Where the sockets are. Their paths must be short: the system's limit is about 100 characters."""
    folder = _folders(environ)[0]
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        message = f"`{folder}` must be a folder that belongs to you alone, as whoever opens the sockets in it can stop your pipelines"
        raise SetupError(Diagnostic("MS186", message, help=f"`chmod 700 {folder}`, or set XDG_RUNTIME_DIR"))
    return folder


def _folders(environ: Mapping[str, str]) -> list[Path]:
    """The user's folder for running programs, if the system has made one, and the one for all others: services have only that."""
    home = Path(environ.get("XDG_RUNTIME_DIR") or "/nonexistent")
    own = Path(tempfile.gettempdir()) / f"millstream-{os.getuid()}"
    return [home / "millstream", own] if home.is_dir() else [own]


def listen(environ: Mapping[str, str]) -> tuple[socket.socket, Path]:
    """A new socket that only this user can open."""
    path = folder_of(environ) / f"{os.getpid()}-{uuid.uuid4().hex[:8]}.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    path.chmod(0o600)
    listener.listen(64)
    return listener, path


def register(found: Registration) -> None:
    _note_of(found.socket).write_text(json.dumps(asdict(found)))


def forget(path: str) -> None:
    for each in (_note_of(path), Path(path)):
        each.unlink(missing_ok=True)


def running(environ: Mapping[str, str]) -> list[Registration]:
    """The runs that answer, oldest first."""
    found = []
    folder_of(environ)
    for note in (note for folder in _folders(environ) if _is_own(folder) for note in folder.glob("*.json")):
        with suppress(OSError, ValueError, TypeError):
            each = Registration(**json.loads(note.read_text()))
            if _answers(each.socket):
                found.append(each)
            else:
                forget(each.socket)
    return sorted(found, key=lambda each: each.began)


def find(name: str, environ: Mapping[str, str], checkpoint: str = "") -> Registration:
    """The run of a pipeline, by its name or its process; with a checkpoint only the run that uses it."""
    known = running(environ)
    found = matching(name, known, checkpoint)
    if len(found) == 1:
        return found[0]
    if found:
        message = f"{len(found)} runs of `{name}` are in progress"
        ways = ", ".join(f"{each.process} ({each.checkpoint})" for each in found)
        raise UsageError([Diagnostic("MS187", message, help=f"name one by its process: {ways}")])
    message = f"no pipeline `{name}`{f' with the checkpoint `{checkpoint}`' if checkpoint else ''} runs here"
    others = nearest(name, [each.name for each in known if each.name != name])
    raise UsageError([Diagnostic("MS187", message, help=others or "`millstream list` shows those that run under your user")])


def matching(name: str, known: Iterable[Registration], checkpoint: str = "") -> list[Registration]:
    """The runs that a name may mean."""
    return [each for each in known if name in {each.name, str(each.process)} and checkpoint in {"", each.checkpoint}]


def _is_own(folder: Path) -> bool:
    return folder.is_dir() and folder.lstat().st_uid == os.getuid()


def _answers(path: str) -> bool:
    """Whether the process is there. One that is busy is."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(2)
        try:
            asking.connect(path)
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            return True
        return True


def _note_of(path: str) -> Path:
    return Path(path).with_suffix(".json")
