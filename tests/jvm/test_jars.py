from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from millstream.errors import SetupError, UsageError
from millstream.jvm import jars
from millstream.jvm.java import Java
from millstream.jvm.lock import LOCK, Jar
from millstream.jvm.machine import find_spark

CONTENT = b"a jar"
THING = Jar("org.example", "thing", "1.2", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
# stands in for Ivy: puts a file where the argument after -retrieve says
IVY = 'while [ "$1" != "-retrieve" ]; do shift; done; printf "%s" "{content}" > "$(dirname "$2")/thing-1.2.jar"; echo called >> {log}'

Pretend = Callable[[str], Java]


@pytest.fixture(autouse=True)
def _table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "LOCK", {find_spark().minor: {"thing": (THING,)}})


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"MILLSTREAM_CACHE": str(tmp_path / "cache")}


def ivy(tmp_path: Path, content: str = "a jar") -> str:
    return IVY.format(content=content, log=tmp_path / "calls")


def fetched(java: Java, environ: dict[str, str]) -> list[Path]:
    return jars.fetch(["thing"], java, lambda _: None, environ)


def failure(java: Java, environ: dict[str, str]) -> str:
    with pytest.raises(SetupError) as caught:
        fetched(java, environ)
    return str(caught.value)


def test_a_missing_jar_is_fetched_and_kept(pretend: Pretend, environ: dict[str, str], tmp_path: Path) -> None:
    paths = fetched(pretend(ivy(tmp_path)), environ)
    assert paths == [tmp_path / "cache" / "jars" / "thing-1.2.jar"]
    assert paths[0].read_bytes() == CONTENT


def test_a_jar_that_is_here_is_not_fetched_again(pretend: Pretend, environ: dict[str, str], tmp_path: Path) -> None:
    java = pretend(ivy(tmp_path))
    assert fetched(java, environ) == fetched(java, environ)
    assert (tmp_path / "calls").read_text().count("called") == 1


def test_progress_is_told_only_when_something_is_fetched(pretend: Pretend, environ: dict[str, str], tmp_path: Path) -> None:
    told: list[str] = []
    java = pretend(ivy(tmp_path))
    for _ in range(2):
        jars.fetch(["thing"], java, told.append, environ)
    assert told == ["fetching org.example:thing:1.2 (0.0 MB), once"]


def test_another_file_than_the_locked_one_is_not_kept(pretend: Pretend, environ: dict[str, str], tmp_path: Path) -> None:
    text = failure(pretend(ivy(tmp_path, "b jar")), environ)
    assert "MS043" in text
    assert THING.sha256 in text
    assert list((tmp_path / "cache" / "jars").iterdir()) == []


def test_a_jar_that_was_changed_in_the_cache_is_refused(pretend: Pretend, environ: dict[str, str], tmp_path: Path) -> None:
    java = pretend(ivy(tmp_path))
    fetched(java, environ)[0].write_bytes(b"b jar")
    text = failure(java, environ)
    assert "MS043" in text
    assert "remove the file" in text


def test_a_failed_fetch_is_one_clear_message(pretend: Pretend, environ: dict[str, str]) -> None:
    text = failure(pretend("echo ':: org.example#thing;1.2: not found'; exit 1"), environ)
    assert "MS042" in text
    assert "org.example#thing;1.2: not found" in text
    assert "MILLSTREAM_JARS" in text


def test_a_fetch_that_claims_success_without_a_file_fails(pretend: Pretend, environ: dict[str, str]) -> None:
    assert "MS042" in failure(pretend("exit 0"), environ)


def test_the_given_folder_is_looked_at_first(pretend: Pretend, environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    other = tmp_path / "given" / "thing-1.3.jar"
    other.write_bytes(b"another build")
    assert fetched(pretend("exit 1"), environ | {"MILLSTREAM_JARS": str(tmp_path / "given")}) == [other]


def test_a_given_folder_without_the_jar_falls_back_to_the_cache(pretend: Pretend, environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    paths = fetched(pretend(ivy(tmp_path)), environ | {"MILLSTREAM_JARS": str(tmp_path / "given")})
    assert paths[0].parent == tmp_path / "cache" / "jars"


def test_what_is_missing_is_told_without_fetching(environ: dict[str, str]) -> None:
    assert jars.jar_paths(["thing", "java"], environ) == (jars.Located(THING, None),)


def test_an_unknown_extra_is_refused_with_the_nearest(environ: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="did you mean `thing`"):
        jars.require_known(["thin"])


def test_the_lock_table_is_complete_for_the_supported_spark() -> None:
    locked = {jar for extra in LOCK[find_spark().minor].values() for jar in extra}  # two extras may share one
    assert locked
    assert all(re.fullmatch(r"[0-9a-f]{64}", jar.sha256) and jar.size > 0 for jar in locked)
    assert len({jar.file for jar in locked}) == len(locked)


def test_a_jar_with_a_longer_name_is_not_taken_for_another_build(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "thing-common-9.jar").write_bytes(b"")
    (located,) = jars.jar_paths(["thing"], {**environ, "MILLSTREAM_JARS": str(tmp_path)})
    assert located.path is None
    (tmp_path / "thing-9.jar").write_bytes(b"")
    (located,) = jars.jar_paths(["thing"], {**environ, "MILLSTREAM_JARS": str(tmp_path)})
    assert located.path == tmp_path / "thing-9.jar"
