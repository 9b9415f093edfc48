from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from millstream.errors import SetupError
from millstream.jvm import archive as archives
from millstream.jvm import training
from millstream.jvm.archive import Archive, archive_of, claim, make_later, prune
from millstream.jvm.java import Java
from millstream.jvm.machine import Spark

Pretend = Callable[[str], Java]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"MILLSTREAM_CACHE": str(tmp_path / "cache")}


@pytest.fixture
def java(pretend: Pretend) -> Java:
    """A Java with an archive of its own classes."""
    java = pretend("exit 1")
    (java.home / "lib" / "server").mkdir(parents=True)
    (java.home / "lib" / "server" / "classes.jsa").touch()
    return java


@pytest.fixture
def missing(java: Java, environ: dict[str, str], tmp_path: Path) -> Archive:
    return archive_of(java, Spark(tmp_path, "4.1.4"), [], environ)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Commands that would have been started."""
    commands: list[Any] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **options: commands.append((command, options)))
    return commands


def made(archive: Archive) -> Archive:
    archive.path.parent.mkdir(parents=True, exist_ok=True)
    archive.path.touch()
    return archive


def test_another_java_spark_or_jar_is_another_archive(java: Java, environ: dict[str, str], tmp_path: Path) -> None:
    jar = tmp_path / "a.jar"
    jar.write_text("1")
    spark = Spark(tmp_path, "4.1.4")
    names = {archive_of(java, spark, [jar], environ).path, archive_of(replace(java, version=21), spark, [jar], environ).path}
    names |= {archive_of(java, Spark(tmp_path, "4.1.5"), [jar], environ).path, archive_of(java, spark, [], environ).path}
    jar.write_text("changed")
    names.add(archive_of(java, spark, [jar], environ).path)
    assert len(names) == 5


def test_the_same_machine_finds_the_same_archive(java: Java, environ: dict[str, str], tmp_path: Path) -> None:
    spark = Spark(tmp_path, "4.1.4")
    assert archive_of(java, spark, [], environ) == archive_of(java, spark, [], environ)


def test_a_missing_archive_adds_no_options(missing: Archive) -> None:
    assert missing.use() == []


def test_an_archive_is_used_and_verified(missing: Archive) -> None:
    options = made(missing).use()
    assert f"-XX:SharedArchiveFile={missing.path}" in options
    assert {"-Xshare:auto", "-XX:+VerifySharedSpaces"} <= set(options)


def test_a_java_without_its_own_archive_needs_both_layers(missing: Archive) -> None:
    (missing.java.home / "lib" / "server" / "classes.jsa").unlink()
    assert made(missing).use() == []
    missing.base.touch()
    assert f"-XX:SharedArchiveFile={missing.base}:{missing.path}" in missing.use()


def test_a_missing_archive_is_made_by_a_detached_process(missing: Archive, environ: dict[str, str], started: list[Any]) -> None:
    assert make_later(missing, environ)
    command, options = started[0]
    assert command[-1] == "millstream.jvm.training"
    assert options["start_new_session"]


def test_a_made_archive_is_not_made_again(missing: Archive, environ: dict[str, str], started: list[Any]) -> None:
    assert not make_later(made(missing), environ)
    assert started == []


@pytest.mark.parametrize("mark", ["lock", "failed"])
def test_an_archive_under_way_or_failed_is_left_alone_for_a_while(
    mark: str, missing: Archive, environ: dict[str, str], started: list[Any]
) -> None:
    note = made(missing).path.with_suffix(f".{mark}")
    missing.path.unlink()
    note.touch()
    assert not make_later(missing, environ)
    os.utime(note, (time.time() - 2 * 86400,) * 2)
    assert make_later(missing, environ)


def test_it_can_be_switched_off(missing: Archive, environ: dict[str, str], started: list[Any]) -> None:
    assert not make_later(missing, environ | {"MILLSTREAM_ARCHIVE": "off"})
    assert started == []


def test_only_one_process_makes_an_archive(missing: Archive) -> None:
    lock = claim(missing)
    assert lock is not None
    assert claim(missing) is None
    lock.unlink()
    assert claim(missing) is not None


def test_a_lock_that_was_left_behind_does_not_hold(missing: Archive) -> None:
    lock = claim(missing)
    assert lock is not None
    os.utime(lock, (time.time() - 3600,) * 2)
    assert claim(missing) is not None


def test_the_archives_used_last_are_kept(missing: Archive) -> None:
    folder = made(missing).path.parent
    for age in range(5):
        path = folder / f"old-{age}.jsa"
        path.touch()
        os.utime(path, (time.time() - 1000 - age,) * 2)
    prune(missing)
    assert sorted(path.name for path in folder.iterdir()) == sorted([missing.path.name, "old-0.jsa", "old-1.jsa"])


def test_a_training_that_fails_leaves_a_note_and_nothing_else(java: Java, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "find_java", lambda _: java)
    with pytest.raises(SetupError, match="MS044"):
        training.make(environ | {"JAVA_HOME": str(java.home)})
    folder = archives.archives_dir(environ)
    assert [path.suffix for path in folder.iterdir()] == [".failed"]
