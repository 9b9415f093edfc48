"""Pipelines that run on this machine: they are found by name, and a note whose process has died is removed."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from millstream.errors import UsageError
from millstream.inspector.attended import AttendedRun
from millstream.inspector.registration import find, running

Attend = Callable[..., tuple[AttendedRun, str]]
OTHER = "name: clicks\nsources: {g: {type: generator, fields: {id: {type: sequence}}}}\nsinks: {out: {type: blackhole, from: g}}"


def test_a_run_is_found_by_name_and_by_process(attend: Attend) -> None:
    attend()
    attend(OTHER)
    assert [each.name for each in running(os.environ)] == ["shop", "clicks"]
    assert find("clicks", os.environ).process == os.getpid()
    with pytest.raises(UsageError, match="did you mean `shop`"):
        find("shpo", os.environ)
    with pytest.raises(UsageError, match="2 runs"):
        find(str(os.getpid()), os.environ)


def test_the_note_of_a_dead_process_is_removed(attend: Attend, sockets: Path) -> None:
    attend()
    (note,) = (sockets / "millstream").glob("*.json")
    dead = note.with_name("1-dead.json")
    dead.write_text(json.dumps(json.loads(note.read_text()) | {"socket": str(dead.with_suffix(".sock")), "name": "gone"}))
    assert [each.name for each in running(os.environ)] == ["shop"]
    assert not dead.exists()
    dead.write_text("{")
    assert [each.name for each in running(os.environ)] == ["shop"]


def test_only_its_user_can_open_the_socket(attend: Attend, sockets: Path) -> None:
    attend()
    (path,) = (sockets / "millstream").glob("*.sock")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_runs_of_services_are_found_too(attend: Attend, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A service has no folder for running programs; a folder that does not exist is none."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    home = os.environ["XDG_RUNTIME_DIR"]
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/nonexistent/folder")
    attend()
    assert [each.name for each in running(os.environ)] == ["shop"]
    monkeypatch.setenv("XDG_RUNTIME_DIR", home)
    assert [each.name for each in running(os.environ)] == ["shop"]


def test_a_checkpoint_tells_runs_of_one_name_apart(attend: Attend) -> None:
    run, _ = attend()
    url = run.checkpoint.storage.url
    assert find("shop", os.environ, url).checkpoint == url
    with pytest.raises(UsageError, match="with the checkpoint `/elsewhere`"):
        find("shop", os.environ, "/elsewhere")
