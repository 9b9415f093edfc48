"""A name without contents at the end of Spark's logs is removed before a run; anywhere else it stays, and is damage."""

import io
import json
import zipfile
from pathlib import Path

import pytest

from millstream.checkpoint.layout import QueryCheckpoint
from millstream.checkpoint.repair import remove_unfinished
from millstream.clients.storage import LocalStorage
from millstream.errors import RunError


def offsets(log: int) -> str:
    return f'v1\n{{"batchTimestampMs":1}}\n{{"logOffset":{log}}}'


COMMIT = 'v1\n{"nextBatchWatermarkMs":0}'
SOUND = {
    "metadata": '{"id":"x"}',
    **{f"offsets/{epoch}": offsets(epoch) for epoch in range(3)},
    **{f"commits/{epoch}": COMMIT for epoch in range(2)},
    **{f"sources/0/{epoch}": "v1\n{}" for epoch in range(3)},
}


def query(folder: Path, files: dict[str, str]) -> QueryCheckpoint:
    for name, text in files.items():
        LocalStorage(folder).put(f"queries/q/{name}", text.encode())
    return QueryCheckpoint(LocalStorage(folder), "q")


@pytest.mark.parametrize("torn", ["", "\0" * 200, 'v1\n{"batchTimes'], ids=["empty", "zeroes", "cut off"])
@pytest.mark.parametrize(
    ("path", "gone"),
    [
        ("offsets/3", ["offsets/3"]),
        ("commits/2", ["commits/2"]),
    ],
)
def test_the_last_entry_of_a_log_is_written_anew(tmp_path: Path, path: str, gone: list[str], torn: str) -> None:
    made = query(tmp_path, SOUND | {path: torn})
    assert remove_unfinished(made) == gone
    made.examine()


def test_a_plan_that_outlived_the_commit_before_it_goes_too(tmp_path: Path) -> None:
    made = query(tmp_path, SOUND | {"commits/1": ""})
    assert remove_unfinished(made) == ["offsets/2", "commits/1"]
    made.examine()


def test_notes_of_a_source_go_when_no_plan_uses_them(tmp_path: Path) -> None:
    made = query(tmp_path, SOUND | {"sources/0/3": "", "sources/0/1": ""})
    assert remove_unfinished(made) == ["sources/0/3"]


def test_a_query_that_never_planned_begins_again(tmp_path: Path) -> None:
    made = query(tmp_path, {"metadata": "", "offsets/0": "", "sources/0/0": "", "state/0/_metadata/metadata": "v1"})
    assert sorted(remove_unfinished(made)) == ["metadata", "offsets/0", "sources/0/0", "state"]
    made.examine()


@pytest.mark.parametrize(
    "files",
    [{"offsets/1": "", "commits/1": COMMIT}, {"metadata": ""}, {"offsets/2": "v2\n{"}, {"commits/0": "", "offsets/1": offsets(1)}],
    ids=["a plan that is committed", "the name of a query with epochs", "another version", "an older commit"],
)
def test_what_was_durable_stays_and_is_damage(tmp_path: Path, files: dict[str, str]) -> None:
    made = query(tmp_path, SOUND | files)
    before = made.storage.files()
    assert remove_unfinished(made) == []
    assert made.storage.files() == before


def test_a_plan_whose_rows_are_kept_stays(tmp_path: Path) -> None:
    LocalStorage(tmp_path).put("_millstream/staged/q/node/2.json", b"{}")
    made = query(tmp_path, SOUND | {"offsets/2": ""})
    assert remove_unfinished(made) == []
    with pytest.raises(RunError, match="MS052"):
        made.examine()


def snapshot(*tables: tuple[str, int]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        files = [{"localSstFileName": name, "dfsSstFileName": name, "sizeBytes": size} for name, size in tables]
        archive.writestr("metadata", "v1\n" + json.dumps({"sstFiles": files, "numKeys": 1}))
    return data.getvalue()


@pytest.mark.parametrize(
    ("newest", "changes", "gone"),
    [
        (b"", range(3, 6), ["state/0/0/5.zip"]),
        (snapshot(("b.sst", 9)), range(3, 6), ["state/0/0/5.zip"]),
        (snapshot(("a.sst", 4)), range(3, 6), []),
        (b"", range(4, 6), []),
    ],
    ids=["empty", "a table too short", "whole", "nothing else to read from"],
)
def test_an_unfinished_snapshot_goes_where_changes_replace_it(tmp_path: Path, newest: bytes, changes: range, gone: list[str]) -> None:
    made = query(tmp_path, SOUND | {f"state/0/0/{version}.changelog": "x" for version in changes})
    for name, data in {"SSTs/a.sst": b"aaaa", "SSTs/b.sst": b"bb", "2.zip": snapshot(("a.sst", 4)), "5.zip": newest}.items():
        made.storage.put(f"state/0/0/{name}", data)
    assert remove_unfinished(made) == gone
