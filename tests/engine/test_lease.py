"""A checkpoint has one owner, and a dead owner holds nothing."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from millstream.checkpoint.layout import Checkpoint
from millstream.clients.storage import LocalStorage
from millstream.errors import RunError

HOLD = """
import sys, time
from pathlib import Path
from millstream.clients.storage import LocalStorage
from millstream.checkpoint.layout import Checkpoint
lease = Checkpoint(LocalStorage(Path(sys.argv[1])), "p").claim()
print("held", flush=True)
time.sleep(60)
"""


def checkpoint(folder: Path, name: str = "p") -> Checkpoint:
    return Checkpoint(LocalStorage(folder), name)


def test_a_second_run_is_refused_with_the_first_ones_process_and_host(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE)
    try:
        assert holder.stdout
        holder.stdout.readline()
        with pytest.raises(RunError) as refused:
            checkpoint(tmp_path).claim()
        assert refused.value.diagnostics[0].code == "MS050"
        assert f"process {holder.pid} on host" in refused.value.diagnostics[0].message
    finally:
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
    checkpoint(tmp_path).claim().release()


def test_a_released_checkpoint_can_be_claimed_again(tmp_path: Path) -> None:
    for _ in range(2):
        checkpoint(tmp_path).claim().release()


def test_the_checkpoint_of_another_pipeline_is_refused(tmp_path: Path) -> None:
    checkpoint(tmp_path, "other").claim().release()
    with pytest.raises(RunError, match="MS051"):
        checkpoint(tmp_path).claim()
    checkpoint(tmp_path, "other").claim().release()


@pytest.mark.parametrize(
    ("path", "content"),
    [("metadata", "{"), ("offsets/0", ""), ("offsets/0", "v2\n{}"), ("offsets/0", "v1\n{"), ("commits/0", "")],
    ids=["metadata cut off", "empty offsets", "another version", "offsets cut off", "empty commit"],
)
def test_damage_is_found_before_anything_runs(tmp_path: Path, path: str, content: str) -> None:
    files = {"metadata": '{"id":"x"}', "offsets/0": 'v1\n{"batchTimestampMs":1}\n{"logOffset":0}', "commits/0": "v1\n{}"} | {path: content}
    for name, text in files.items():
        LocalStorage(tmp_path).put(f"queries/q/{name}", text.encode())
    with pytest.raises(RunError, match="MS052"):
        checkpoint(tmp_path).query("q").examine()


def test_a_sound_checkpoint_passes(tmp_path: Path) -> None:
    files = {"metadata": '{"id":"x"}', "offsets/0": 'v1\n{"batchTimestampMs":1}\n{"logOffset":0}', "commits/0": "v1\n{}"}
    for name, text in files.items():
        LocalStorage(tmp_path).put(f"queries/q/{name}", text.encode())
    checkpoint(tmp_path).query("q").examine()
