"""The default checkpoint lies beside the pipeline's file, in any working directory; an older one elsewhere is reported."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_commands import millstream

from millstream import StreamEnvironment
from millstream.engine.engine import SparkEngine
from millstream.engine.offline.access import CheckpointPlace
from millstream.errors import RunError
from millstream.plan.checkpoint_path import default_checkpoint
from millstream.plan.run_options import RunOptions, checkpoint_of
from millstream.plan.topology import Topology
from millstream.spec.files import load_pipeline
from millstream.spec.loader import loads

TEXT = """
sources: {o: {type: memory, rows: [{id: 1}]}}
sinks: {out: {type: memory, from: o}}
"""


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Topology]:
    """The pipeline `p/w.yaml`, loaded from the folder above."""
    (tmp_path / "p").mkdir()
    (tmp_path / "p/w.yaml").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    return lambda: load_pipeline(os.path.relpath(tmp_path / "p/w.yaml"))


def keep(folder: Path, **more: Any) -> None:
    (folder / "_millstream").mkdir(parents=True)
    (folder / "_millstream/pipeline.json").write_text(json.dumps({"pipeline": "w", "format": 1, **more}))


@pytest.mark.spark
def test_a_job_is_done_once_from_any_directory(
    beside: Callable[[], Topology], spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert SparkEngine(spark).run(beside(), RunOptions()).epochs == 1
    monkeypatch.chdir(tmp_path / "p")
    assert SparkEngine(spark).run(beside(), RunOptions()).epochs == 0
    assert json.loads((tmp_path / "p/.millstream/w/_millstream/pipeline.json").read_text())["home"] == "w.yaml"


def test_a_checkpoint_in_the_working_directory_is_named(beside: Callable[[], Topology], tmp_path: Path) -> None:
    keep(tmp_path / ".millstream/w")
    for look in (checkpoint_of, CheckpointPlace.of, lambda topology: SparkEngine().run(topology, RunOptions())):
        with pytest.raises(RunError, match="MS148") as caught:
            look(beside())
        assert f"mv {tmp_path / '.millstream/w'} {tmp_path / 'p/.millstream/w'}" in str(caught.value)
    (tmp_path / "p/.millstream").mkdir()
    (tmp_path / ".millstream/w").rename(tmp_path / "p/.millstream/w")
    assert checkpoint_of(beside()) == str(tmp_path / "p/.millstream/w")


@pytest.mark.parametrize("more", [{"home": "w.yaml"}, {"home": "."}, {"pipeline": "other"}])
def test_one_that_belongs_to_another_file_is_left_alone(beside: Callable[[], Topology], tmp_path: Path, more: dict[str, Any]) -> None:
    (tmp_path / "w.yaml").touch()
    keep(tmp_path / ".millstream/w", **more)
    assert checkpoint_of(beside()) == str(tmp_path / "p/.millstream/w")


def test_one_whose_file_was_moved_is_named(beside: Callable[[], Topology], tmp_path: Path) -> None:
    keep(tmp_path / ".millstream/w", home="w.yaml")
    with pytest.raises(RunError, match="MS148"):
        checkpoint_of(beside())


def test_a_check_warns_of_it_and_continues(beside: Callable[[], Topology], tmp_path: Path) -> None:
    keep(tmp_path / ".millstream/w")
    done = millstream(tmp_path, "check", "p/w.yaml", "--format", "json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["is_valid"], [each["code"] for each in found["warnings"]]) == (0, True, ["MS148"])


def test_a_place_that_cannot_be_written_is_reported(beside: Callable[[], Topology], tmp_path: Path) -> None:
    (tmp_path / "p/.millstream").write_text("in the way")
    with pytest.raises(RunError, match="the checkpoint cannot be written to"):
        SparkEngine().run(beside(), RunOptions())


def test_python_keeps_it_beside_the_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert default_checkpoint(StreamEnvironment("x").topology()) == str(Path(__file__).parent / ".millstream/x")
    namespace: dict[str, Any] = {}
    exec("from millstream import StreamEnvironment; env = StreamEnvironment('x')", namespace)
    assert default_checkpoint(namespace["env"].topology()) == str(tmp_path / ".millstream/x")


@pytest.mark.parametrize("name", ["../../escaped", "..", ".hidden", "a/b", "a\\b", "' '"])
def test_a_name_that_leaves_its_folder_is_refused(name: str) -> None:
    found = loads(f"name: {name}\n{TEXT}").errors
    assert [(error.code, error.span.line if error.span else 0) for error in found] == [("MS017", 1)]


@pytest.mark.parametrize("name", ["10-kafka", "my pipeline", "a.b", "größe"])
def test_other_names_stay(name: str) -> None:
    assert not loads(f"name: {name}\n{TEXT}").errors
