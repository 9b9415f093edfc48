from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from millstream.jvm.arguments import JvmOptions, escape, quote, write_arguments
from millstream.jvm.java import Java
from millstream.jvm.machine import Spark
from millstream.jvm.scratch import Scratch

Pretend = Callable[[str], Java]


@pytest.fixture
def options(pretend: Pretend, tmp_path: Path) -> Callable[..., JvmOptions]:
    java = pretend("exit 1")
    scratch = Scratch(tmp_path, (tmp_path / "owner").open("wb"))
    return lambda **others: JvmOptions(java=java, spark=Spark(tmp_path, "4.1.4"), class_path=[Path("/a b.jar")], scratch=scratch, **others)


def test_secrets_are_in_files_that_only_the_owner_can_read(options: Callable[..., JvmOptions], tmp_path: Path) -> None:
    arguments = write_arguments(options(submit={"spark.hadoop.fs.s3a.secret.key": "hush"}), tmp_path)
    assert "hush" not in arguments.read_text()
    assert "hush" in (tmp_path / "spark.properties").read_text()
    assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("jvm.args", "spark.properties")} == {0o600}


def test_a_local_session_goes_straight_to_the_gateway(options: Callable[..., JvmOptions], tmp_path: Path) -> None:
    lines = write_arguments(options(flags=["-Xmx1g"]), tmp_path).read_text().splitlines()
    assert lines[-1] == '"org.apache.spark.api.python.PythonGatewayServer"'
    assert lines[-3:-1] == ['"-cp"', '"/a b.jar"']
    assert '"-Xmx1g"' in lines


@pytest.mark.parametrize(("plain", "written"), [("a b", '"a b"'), ('say "x"', '"say \\"x\\""'), ("C:\\x", '"C:\\\\x"')])
def test_arguments_survive_blanks_quotes_and_backslashes(plain: str, written: str) -> None:
    assert quote(plain) == written


@pytest.mark.parametrize(("plain", "written"), [("a=b:c", "a\\=b\\:c"), (" x", "\\ x"), ("a\nb", "a\\nb"), ("#1", "\\#1")])
def test_settings_survive_the_signs_of_a_properties_file(plain: str, written: str) -> None:
    assert escape(plain) == written
