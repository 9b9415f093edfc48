"""The power fails: what was committed is there and whole, and the next run ends with every row once. Without `fsync`, files are empty."""

import json
import os
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.engine.powercut import Disk, missing

from millstream import committed_files
from millstream.connectors.file.sink import FileSinkRun
from millstream.engine.epoch.loop import EpochLoop
from millstream.errors import RunError
from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = [pytest.mark.spark, pytest.mark.skipif(bool(missing()), reason=missing() or "-")]
PIPELINE = """
settings: {{checkpoint: disk/ck, durability: {durability}}}
sources:
  numbers: {{type: file, path: in, format: json, schema: {{id: int64}}, mode: {{type: bounded}}, max_files_per_epoch: 1}}
transforms:
  sums: {{type: sql, sql: "SELECT id % 3 AS k, count(*) AS n FROM numbers GROUP BY id % 3"}}
sinks:
  out: {{type: file, from: sums, path: disk/out, format: json}}
"""
FILES, ROWS = 4, 6


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    try:
        made = Disk(tmp_path)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no disk image can be mounted here: {error.stderr.decode().strip()}")
    (tmp_path / "in").mkdir()
    for number in range(FILES):
        path = tmp_path / f"in/{number}.json"
        path.write_text("".join(json.dumps({"id": number * ROWS + i}) + "\n" for i in range(ROWS)))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    yield made
    made.unmount()


def rows() -> Counter[tuple[int, int]]:
    lines = [json.loads(line) for file in committed_files("disk/out") for line in Path(file).read_text().splitlines()]
    return Counter((line["k"], line["n"]) for line in lines)


def up_to(epoch: int) -> Counter[tuple[int, int]]:
    return Counter({(k, (each + 1) * ROWS // 3): 1 for each in range(epoch + 1) for k in range(3)})


def whole() -> bool:
    """Whether every row was counted, once. An epoch that was never staged may be cut in another way when it is planned anew."""
    found = rows()
    return max(found.values()) == 1 and all(max(n for key, n in found if key == k) == FILES * ROWS // 3 for k in range(3))


@pytest.fixture
def cuts(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Copies of the disk, taken while the pipeline runs. Epoch 2 is the one in progress."""
    found: dict[str, Path] = {}
    ran, commit = EpochLoop._run, FileSinkRun.commit

    def begins(self: EpochLoop, frame: object, number: int) -> None:
        if number in (0, 2) and not {f"planned-{number}", "over"} & found.keys():
            found[f"planned-{number}"] = disk.cut(f"planned-{number}")
        ran(self, frame, number)  # type: ignore[arg-type]

    def commits(self: FileSinkRun, staged: object, epoch: object) -> None:
        if epoch.number == 2 and "staged" not in found:  # type: ignore[attr-defined]
            found["staged"] = disk.cut("staged")
        commit(self, staged, epoch)  # type: ignore[arg-type]
        if epoch.number == 2 and "committed" not in found:  # type: ignore[attr-defined]
            found["committed"] = disk.cut("committed")

    monkeypatch.setattr(EpochLoop, "_run", begins)
    monkeypatch.setattr(FileSinkRun, "commit", commits)
    return found


def test_what_is_committed_survives_and_the_next_run_is_exactly_once(
    disk: Disk, cuts: dict[str, Path], pipeline: Callable[..., Topology], run: Callable[..., Report]
) -> None:
    text = PIPELINE.format(durability="fsync")
    run(pipeline(text))
    assert rows() == up_to(FILES - 1)
    held = {"planned-0": -1, "planned-2": 1, "staged": 1, "committed": 2}
    assert cuts.keys() == held.keys()
    for name, image in list(cuts.items()):
        disk.restart(image)
        assert rows() == up_to(held[name]), name
        run(pipeline(text))
        assert whole(), name


def test_without_fsync_the_same_cut_loses_what_was_committed(
    disk: Disk, cuts: dict[str, Path], pipeline: Callable[..., Topology], run: Callable[..., Report]
) -> None:
    text = PIPELINE.format(durability="process")
    run(pipeline(text))
    assert rows() == up_to(FILES - 1)
    disk.restart(cuts["committed"])
    names = [path for path in disk.place.rglob("*") if path.is_file() and path.name != "somebody-else"]
    assert [path for path in names if path.stat().st_size == 0], "names without contents"
    with pytest.raises((RunError, AssertionError)):
        assert rows() == up_to(2)
