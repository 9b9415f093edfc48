"""A target that holds less than was committed to it is noticed at the start. What it lacks is delivered again, or accepted by name."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millstream import read_committed
from millstream.checkpoint.deliveries import Deliveries
from millstream.connectors.file.sink import FileSinkRun
from millstream.errors import RunError
from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
SINK = "  {name}: {{type: file, from: {source}, path: out/{name}, format: parquet}}\n"
TEXT = """
sources:
  rows: {type: file, path: in, format: json, schema: {id: int64}, max_files_per_epoch: 1}
settings: {trigger: {type: available_now}}
sinks:
"""
THREE = SINK.format(name="three", source="rows")
BOTH = TEXT + SINK.format(name="one", source="rows") + SINK.format(name="two", source="rows")


class Project:
    """A pipeline that gets one file per epoch, and whose targets can be set back."""

    def __init__(self, load: Callable[..., Topology], run: Callable[..., Report], folder: Path) -> None:
        self._load, self._run, self.folder, self.files = load, run, folder, 0
        Path("in").mkdir()

    def go(self, text: str = BOTH, files: int = 0, **options: object) -> Report:
        for number in range(self.files, self.files + files):
            path = Path(f"in/{number}.json")
            path.write_text("".join(json.dumps({"id": number * 10 + i}) + "\n" for i in range(10)))
            os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
        self.files += files
        return self._run(self._load(text), **options)

    def refused(self, text: str = BOTH, files: int = 0, **options: object) -> str:
        with pytest.raises(RunError) as caught:
            self.go(text, files, **options)
        return str(caught.value)

    def set_back(self, files: int = 3) -> None:
        """Sink `one` is restored to what it held two files in."""
        self.go(files=2)
        shutil.copytree("out/one", "older")
        self.go(files=files)
        shutil.rmtree("out/one")
        shutil.move("older", "out/one")

    def counts(self, sink: str) -> Counter[int]:
        return Counter(read_committed(f"out/{sink}")["id"].to_pylist())

    def whole(self, sink: str) -> bool:
        return self.counts(sink) == Counter(range(self.files * 10))


@pytest.fixture
def project(pipeline: Callable[..., Topology], run: Callable[..., Report], tmp_path: Path) -> Project:
    os.chdir(tmp_path)  # the fixture `pipeline` sets it back
    return Project(pipeline, run, tmp_path)


def test_without_the_note_the_run_is_green_and_rows_are_missing(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.set_back()
    monkeypatch.setattr(Deliveries, "find_lacks", lambda *_: [])
    assert project.go(files=1).state == "done"
    assert len(project.counts("one")) == 30 and project.whole("two")


def test_missing_epochs_are_noticed_and_delivered_again_to_the_target_that_lacks_them_and_to_no_other(project: Project) -> None:
    project.set_back()
    said = project.refused(files=1)
    assert "MS140" in said and "sink `one` lacks epochs 2 to 4" in said and "the last epoch that it holds is 1" in said
    assert len(project.counts("one")) == 20 and len(project.counts("two")) == 50
    report = project.go(BOTH + THREE, redeliver=True)
    assert set(project.counts("three")) == set(range(50, 60))  # a new sink gets nothing of what another one lacks
    assert project.whole("one") and project.whole("two")
    assert report.notes == ("delivering again: `one` epochs 2 to 4", "delivered again: `one` epochs 2 to 4")
    assert not Path(".millstream/p/_millstream/redelivery").exists()
    project.go(files=1)
    assert project.whole("one") and project.whole("two")


def test_delivering_again_can_be_interrupted_before_a_half_done_epoch(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    from millstream.connectors.file.sink import FileSinkRun

    project.set_back()
    Path(".millstream/p/queries/rows/commits/4").unlink()
    commit = FileSinkRun.commit

    def dying(self: FileSinkRun, staged: object, epoch: object) -> None:
        if epoch.number == 3:
            raise OSError("the disk is away")
        commit(self, staged, epoch)

    with monkeypatch.context() as patched:
        patched.setattr(FileSinkRun, "commit", dying)
        project.refused(redeliver=True)
    assert "lacks epoch 3" in project.refused()
    project.go(files=1, redeliver=True)
    assert project.whole("one") and project.whole("two")


def test_a_folder_that_is_emptied_during_a_run_is_noticed_by_the_next_commit(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = FileSinkRun.commit

    def emptied(self: FileSinkRun, staged: Any, epoch: Any) -> None:
        if epoch.sink == "one" and epoch.number == 2:
            shutil.rmtree("out/one/_millstream")
        commit(self, staged, epoch)

    monkeypatch.setattr(FileSinkRun, "commit", emptied)
    assert "the target of sink `one` was rolled back: it held epoch 1, but no longer does" in project.refused(files=4)


def test_a_hole_is_accepted_by_name_and_only_once(project: Project) -> None:
    project.set_back()
    assert project.go(accept_target=True).notes == ("accepted as missing in the target: `one` epochs 2 to 4",)
    assert project.go().notes == ()
    project.go(files=1)
    assert len(project.counts("one")) == 30 and project.whole("two")
    shutil.rmtree("out/one")
    assert "lacks epoch 5" in project.refused()
    told = ("delivering again: `one` epoch 5", "delivered again: `one` epoch 5")
    accepted = "still missing, accepted by an earlier run: `one` epochs 2 to 4"
    assert project.go(redeliver=True).notes == (*told, accepted)


def test_a_target_of_another_history_is_refused(project: Project) -> None:
    project.go(files=2)
    (manifest,) = Path("out/one/_millstream").glob("*/00000001.json")
    manifest.write_text(manifest.read_text().replace(json.loads(manifest.read_text())["digest"], "0" * 64))
    said = project.refused(accept_target=True)
    assert "MS055" in said and "another history" in said


def test_a_new_sink_begins_where_it_comes_in_and_may_go_and_come_back(project: Project) -> None:
    project.go(files=2)
    three = BOTH + THREE
    project.go(three)
    project.go(three, files=1)
    assert set(project.counts("three")) == set(range(20, 30))
    project.go(files=1)
    project.go(three, files=1)
    assert set(project.counts("three")) == {*range(20, 30), *range(40, 50)}
    assert project.whole("one")


def test_a_checkpoint_without_the_note_goes_on_and_begins_to_remember(project: Project) -> None:
    project.set_back()
    Path(".millstream/p/_millstream/delivered/rows.json").unlink()
    project.go(files=1)
    shutil.rmtree("out/one")
    assert "lacks epoch 5" in project.refused()


def test_reset_forgets_what_was_delivered(project: Project) -> None:
    project.go(files=2)
    shutil.rmtree("out/one")
    shutil.rmtree("out/two")
    project.go(reset=("rows",))
    assert project.whole("one") and project.whole("two")


def test_offsets_that_are_gone_cannot_be_repeated(project: Project) -> None:
    project.set_back()
    for epoch in range(3):
        Path(f".millstream/p/queries/rows/offsets/{epoch}").unlink()
    said = project.refused(redeliver=True)
    assert "MS141" in said and "no longer holds the offsets of epoch 1" in said


def test_what_would_come_out_otherwise_is_not_repeated(project: Project) -> None:
    text = stepped("SELECT id, uuid() AS u FROM rows")
    project.go(text, files=1)
    shutil.rmtree("out/one")
    said = project.refused(text, redeliver=True)
    assert "MS141" in said and "`step` gives other rows each time" in said


def stepped(sql: str) -> str:
    return TEXT.replace("settings", f"transforms:\n  step: {{type: sql, sql: '{sql}'}}\nsettings") + SINK.format(name="one", source="step")


def test_totals_are_delivered_again_from_the_state_that_they_had(project: Project) -> None:
    text = stepped("SELECT id % 3 AS k, count(*) AS n FROM rows GROUP BY id % 3")
    project.go(text, files=2)
    shutil.copytree("out/one", "older")
    project.go(text, files=2)
    before = read_committed("out/one").to_pylist()
    shutil.rmtree("out/one")
    shutil.move("older", "out/one")
    assert "MS140" in project.refused(text)
    state = shutil.copytree(".millstream/p/queries/step/state", "kept")
    for path in Path(".millstream/p/queries/step/state").rglob("2.*"):
        path.unlink()
    assert "before epoch 2 is no longer kept" in project.refused(text, redeliver=True)
    shutil.rmtree(".millstream/p/queries/step/state")
    shutil.move(state, ".millstream/p/queries/step/state")
    project.go(text, redeliver=True)
    project.go(text, files=1)
    rows = read_committed("out/one").to_pylist()
    assert rows[: len(before)] == before and max(row["n"] for row in rows) == 17


def test_a_step_that_changed_since_is_not_repeated(project: Project) -> None:
    text = TEXT.replace("settings", "transforms:\n  step: {type: sql, sql: SELECT id FROM rows}\nsettings") + SINK.format(
        name="one", source="step"
    )
    project.go(text, files=1)
    shutil.rmtree("out/one")
    assert "the plan changed since" in project.refused(text.replace("SELECT id FROM", "SELECT id + 1 AS id FROM"), redeliver=True)
    project.go(text, redeliver=True)
    assert project.whole("one")


JOB = TEXT.replace("max_files", "mode: {type: bounded}, max_files") + SINK.format(name="one", source="rows")


def test_a_job_that_is_done_asks_its_targets_and_delivers_again(project: Project) -> None:
    project.go(JOB, files=2)
    assert "nothing is left to do" in project.go(JOB).notes[0]
    shutil.rmtree("out/one")
    assert "lacks epochs 0 to 1" in project.refused(JOB)
    project.go(JOB, redeliver=True)
    assert project.whole("one")
    project.go(JOB)


def test_from_another_directory_a_job_is_told_where_it_wrote_and_plans_no_new_epoch(project: Project) -> None:
    project.go(JOB, files=2)
    home = Path.cwd()
    (home / "elsewhere").mkdir()
    shutil.copytree("in", "elsewhere/in")
    topology = project._load(JOB)
    os.chdir(home / "elsewhere")
    with pytest.raises(RunError) as caught:
        project._run(topology)
    assert f"the rows were written to `{home}/out/one`, and the target is `{home}/elsewhere/out/one` now" in str(caught.value)
    project._run(topology, redeliver=True)
    os.chdir(home)
    assert sorted(path.name for path in Path(".millstream/p/queries/rows/offsets").iterdir() if path.name.isdigit()) == ["0", "1"]
    assert project.go(JOB).state == "done"


def test_a_hole_of_a_job_that_is_done_can_be_accepted(project: Project) -> None:
    project.go(JOB, files=2)
    shutil.rmtree("out/one")
    assert project.go(JOB, accept_target=True).notes[0] == "accepted as missing in the target: `one` epochs 0 to 1"
    project.go(JOB)


def test_a_ledger_in_the_store_is_missed_too(project: Project) -> None:
    text = TEXT + "  shown: {type: print, from: rows}\n"
    project.go(text, files=1)
    Path(".millstream/p/_millstream/store.db").unlink()
    assert "sink `shown` lacks epoch 0" in project.refused(text)
    assert project.go(text, redeliver=True).nodes["shown"].rows_in == 10


def test_the_windows_of_a_job_that_is_done_are_delivered_again(project: Project) -> None:
    text = TEXT.replace(
        "schema: {id: int64}, max_files", "schema: {id: int64}, mode: {type: bounded}, event_time: {column: id, unit: s}, max_files"
    )
    text = text.replace(
        "settings",
        "transforms:\n  step: {type: sql, sql: \"SELECT window.end e, count(*) n FROM rows GROUP BY window(id, '10 seconds')\"}\nsettings",
    )
    text += SINK.format(name="one", source="step")
    project.go(text, files=2)
    before = read_committed("out/one").to_pylist()
    shutil.rmtree("out/one")
    project.go(text, redeliver=True)
    assert sorted(map(str, read_committed("out/one").to_pylist())) == sorted(map(str, before)) and len(before) == 2
