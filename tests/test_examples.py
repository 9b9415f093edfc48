"""Every example runs as its README says; one command and one program in processes of their own, the others on the shared session."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.warm import Done

pytestmark = pytest.mark.spark
EXAMPLES = Path(__file__).parent.parent / "examples"
COMMANDS = [
    ("00-demo", ["run", "orders.yaml"], "demo done"),
    ("01-hello", ["run", "hello.yaml"], '{"n":8,"word":"number 8"}'),
    ("02-files", ["run", "orders.yaml"], "1 rejected row"),
    ("02-files", ["test", "orders.yaml"], "1 passed, 0 failed"),
    ("03-python", ["totals.py"], "4 rows in 1 epoch(s)"),
    ("04-routing", ["routing.py"], "1000 rows read once, 1000 written"),
    ("05-tested", ["test", "clicks.yaml"], "1 passed, 0 failed"),
    ("06-sessions", ["run", "shop.yaml"], '"pages":4,"entered":"start","left":"cart","bought":1'),
    ("07-sensors", ["run", "sensors.yaml"], "passed 8 rows, 2 late rows"),
    ("08-payments", ["payments.py"], "order 4: not paid in time"),
    ("15-model", ["run", "orders.yaml"], '{"id":4,"amount":410.0,"risk":0.36}'),
    ("16-typescript", ["run", "orders.yaml"], "passed 2 rows, 1 rejected row"),
    ("16-typescript", ["test", "orders.yaml"], "1 passed, 0 failed"),
    ("17-plugin", ["run", "messages.yaml"], "masked_texts 6"),
    ("17-plugin", ["test", "messages.yaml"], "1 passed, 0 failed"),
    ("05-tested", ["plan", "clicks.yaml"], "restart.limit = 3  (millstream.yaml)"),
]


COLD = [("01-hello", ["-m", "millstream.cli", "run", "hello.yaml"]), ("03-python", ["totals.py"])]


@pytest.mark.parametrize(
    ("folder", "command", "said"), COMMANDS, ids=[f"{folder}: {' '.join(command[-2:])}" for folder, command, _ in COMMANDS]
)
def test_the_example_runs(folder: str, command: list[str], said: str, tmp_path: Path, warm: Callable[..., Done]) -> None:
    done = warm(*command, folder=shutil.copytree(EXAMPLES / folder, tmp_path / folder))
    assert done.returncode == 0, done.stderr
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("folder", "command"), COLD, ids=["command", "program"])
def test_a_process_says_the_same(folder: str, command: list[str], tmp_path: Path) -> None:
    here = shutil.copytree(EXAMPLES / folder, tmp_path / folder)
    done = subprocess.run([sys.executable, *command], cwd=here, capture_output=True, text=True, timeout=200, check=False)
    (said,) = [said for example, _, said in COMMANDS if example == folder]
    assert (done.returncode, said in done.stdout + done.stderr) == (0, True), done.stderr
