"""Each kind of failure has its exit code, one message and no stack trace, unless `--debug` asks for it."""

import subprocess
import sys

import pytest

from millstream.cli.output import fail
from millstream.errors import BugError, Diagnostic, MillstreamError, RunError, SetupError, SpecError, TemporaryError, UsageError


@pytest.mark.parametrize(
    ("kind", "code"), [(RunError, 1), (UsageError, 2), (BugError, 70), (TemporaryError, 75), (SpecError, 78), (SetupError, 78)]
)
def test_each_kind_has_its_code(kind: type[MillstreamError], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert fail(kind(Diagnostic("MS008", "no")), debug=False) == code
    assert capsys.readouterr().err.startswith("error[MS008]: no\n")


def test_anything_else_is_our_bug(capsys: pytest.CaptureFixture[str]) -> None:
    assert fail(ZeroDivisionError("oops"), debug=False) == 70
    shown = capsys.readouterr().err
    assert "MS099" in shown
    assert "Traceback" not in shown


def test_debug_shows_the_trace() -> None:
    command = [sys.executable, "-m", "millstream.cli", "run", "nowhere.yaml", "--debug"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 78
    assert "Traceback" in done.stderr


def test_more_than_twenty_errors_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    fail(SpecError([Diagnostic("MS008", str(number)) for number in range(25)]), debug=False)
    assert "… and 5 more" in capsys.readouterr().err
