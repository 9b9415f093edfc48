"""Two pipelines of one name are told with their files."""

from __future__ import annotations

from pathlib import Path

from millstream.plan.topology import Topology
from millstream.rules.several import conflicts
from millstream.spec.loader import load

TEXT = "sources: {o: {type: memory, rows: [{id: 1}]}}\nsinks: {s: {type: print, from: o}}\n"


def write(path: Path, text: str) -> Topology:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return load(path, environ={}).require()


def test_files_of_one_folder(tmp_path: Path) -> None:
    (found,) = conflicts([write(tmp_path / f"{name}.yaml", f"name: x\n{TEXT}") for name in ("a", "b")])
    assert found.code == "MS173"
    assert found.message == f"two pipelines are called `x`: in `{tmp_path / 'a.yaml'}` and in `{tmp_path / 'b.yaml'}`"


def test_files_of_one_name_in_two_folders(tmp_path: Path) -> None:
    (found,) = conflicts([write(tmp_path / folder / "main.yaml", TEXT) for folder in ("a", "b")])
    assert f"`{tmp_path / 'a' / 'main.yaml'}` and in `{tmp_path / 'b' / 'main.yaml'}`" in found.message


def test_an_included_file_does_not_stand_for_the_pipeline(tmp_path: Path) -> None:
    write(tmp_path / "shared" / "all.yaml", TEXT)
    (found,) = conflicts([write(tmp_path / f"{name}.yaml", "name: x\ninclude: shared/all.yaml\n") for name in ("a", "b")])
    assert "all.yaml" not in found.message and f"`{tmp_path}`" in found.message
