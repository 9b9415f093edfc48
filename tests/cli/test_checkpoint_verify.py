"""`millstream checkpoint verify`: damage of every kind is found, each with one diagnostic that names the file."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from millstream.checkpoint.checksums import crc32c
from millstream.checkpoint.layout import Checkpoint
from millstream.checkpoint.verification import damages
from millstream.clients.storage import LocalStorage

pytestmark = pytest.mark.spark
QUERY = "queries/totals"


def found(kept: Path) -> list[str]:
    findings = damages(Checkpoint(LocalStorage(kept / ".millstream/kept"), "kept"))
    assert {finding.code for finding in findings} <= {"MS052"}
    return [finding.message for finding in findings]


def test_a_whole_checkpoint_has_no_damage(kept: Path) -> None:
    assert found(kept) == []


@pytest.mark.parametrize(
    "path",
    [
        f"{QUERY}/metadata",
        f"{QUERY}/offsets/0",
        f"{QUERY}/offsets/2",
        f"{QUERY}/commits/1",
        f"{QUERY}/state/0/_metadata/metadata",
        "_millstream/pipeline.json",
        "_millstream/plans/totals.json",
        f"{QUERY}/state/0/0/3.changelog",
        f"{QUERY}/state/0/1/1.changelog",
    ],
)
def test_a_file_that_is_cut_off_is_found(kept: Path, path: str) -> None:
    file = kept / ".millstream/kept" / path
    file.write_bytes(file.read_bytes()[: max(1, file.stat().st_size - 5)])
    (message,) = found(kept)
    assert path in message


@pytest.mark.parametrize(
    "path",
    [
        f"{QUERY}/metadata",
        f"{QUERY}/offsets/1",
        f"{QUERY}/offsets/2",
        f"{QUERY}/commits/1",
        "_millstream/pipeline.json",
        f"{QUERY}/state/0/0/2.changelog",
    ],
)
def test_a_file_that_is_missing_is_found(kept: Path, path: str) -> None:
    (kept / ".millstream/kept" / path).unlink()
    (message,) = found(kept)
    assert path in message
    assert "missing" in message


def test_a_flipped_bit_in_state_is_found(kept: Path) -> None:
    file = kept / ".millstream/kept" / QUERY / "state/0/0/2.changelog"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(bytes(data))
    (message,) = found(kept)
    assert "its contents differ from what was written" in message


def test_a_whole_partition_that_is_gone_is_found(kept: Path) -> None:
    for file in (kept / ".millstream/kept" / QUERY / "state/0/1").glob("*.changelog*"):
        file.unlink()
    assert len(found(kept)) == 3


def test_what_a_stopped_run_leaves_is_no_damage(kept: Path) -> None:
    """An epoch that is half done, and old epochs that are gone from the beginning of the logs, commits last."""
    folder = kept / ".millstream/kept" / QUERY
    (folder / "commits/2").unlink()
    (folder / "offsets/0").unlink()
    assert found(kept) == []


def test_the_command_shows_every_damage_and_ends_with_one(kept: Path, millstream: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    assert (millstream("checkpoint", "verify", "kept.yaml").returncode, found(kept)) == (0, [])
    (kept / ".millstream/kept" / QUERY / "offsets/1").write_text("v1\n{")
    (kept / ".millstream/kept" / QUERY / "commits/0").write_text("")
    done = millstream("checkpoint", "verify", ".millstream/kept")
    assert done.returncode == 1
    assert done.stderr.count("error[MS052]") == 2
    assert "Traceback" not in done.stderr


def test_the_checksum_is_crc32c() -> None:
    assert crc32c(b"123456789") == 0xE3069283
