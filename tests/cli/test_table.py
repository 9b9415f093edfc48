"""`millstream table` edits dynamic tables from the shell."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.servers.postgres import Database
from tests.servers.redis import Server

pytestmark = pytest.mark.server

Millstream = Callable[..., subprocess.CompletedProcess[str]]
PIPELINE = """
connections: {connections}
sources: {{a: {{type: memory, rows: [], schema: {{id: int64}}}}}}
transforms:
  watched: {{type: dynamic_table, {place}, key: id, key_type: int64, columns: {{tier: string, since: date}}}}
  gone: {{type: dynamic_table, backend: memory}}
sinks: {{out: {{type: print, from: a}}}}
"""


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    connections, place = "{}", "backend: sqlite, path: t.db"
    if request.param == "postgres":
        server: Database = request.getfixturevalue("postgres")
        connections, place = f"{{postgres: {server.connection}}}", f"backend: postgres, schema: {server.schema()}"
    if request.param == "redis":
        running: Server = request.getfixturevalue("redis")
        place = f"backend: redis, url: '{running.url}', table: {running.name()}"
    (tmp_path / "p.yaml").write_text(PIPELINE.format(connections=connections, place=place))
    return "p.yaml"


def _rows(done: subprocess.CompletedProcess[str]) -> list[dict]:
    assert done.returncode == 0, done.stderr
    return sorted((json.loads(line) for line in done.stdout.splitlines()), key=lambda row: row["id"])


def test_a_table_from_the_first_row_to_the_last(millstream: Millstream, file: str, tmp_path: Path) -> None:
    assert millstream("table", "put", file, "watched", "7", "tier=gold", "since=2026-01-02").returncode == 0
    assert millstream("table", "put", file, "watched", "8").returncode == 0
    assert _rows(millstream("table", "list", file, "watched")) == [
        {"id": 7, "tier": "gold", "since": "2026-01-02"},
        {"id": 8, "tier": None, "since": None},
    ]
    (tmp_path / "more.csv").write_text("id,tier\n8,silver\n9,\n8,bronze\n")
    loaded = millstream("table", "load", file, "watched", "more.csv")
    assert "3 rows written" in loaded.stderr
    assert _rows(millstream("table", "get", file, "watched", "8", "9")) == [
        {"id": 8, "tier": "bronze", "since": None},
        {"id": 9, "tier": None, "since": None},
    ]
    assert "2 rows deleted" in millstream("table", "delete", file, "watched", "7", "8", "100").stderr
    missing = millstream("table", "get", file, "watched", "7")
    assert (missing.returncode, missing.stdout) == (1, "")


def test_mistakes_are_reported_and_nothing_is_written(millstream: Millstream, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE.format(connections="{}", place="backend: sqlite, path: t.db"))
    (tmp_path / "wrong.csv").write_text("id,teir\n1,x\n")
    (tmp_path / "short.csv").write_text("id,tier\n1\n")
    (tmp_path / "keyless.csv").write_text("tier\nx\n")
    for arguments, code, said in (
        (("list", "p.yaml", "wached"), 2, "did you mean `watched`?"),
        (("list", "p.yaml", "gone"), 2, "in the memory of a run"),
        (("put", "p.yaml", "watched", "x"), 1, "a value of `id` is not a `int64`"),
        (("put", "p.yaml", "watched", "1", "teir=x"), 2, "did you mean `tier`?"),
        (("put", "p.yaml", "watched", "1", "tier"), 2, "is not COLUMN=VALUE"),
        (("load", "p.yaml", "watched", "wrong.csv"), 2, "did you mean `tier`?"),
        (("load", "p.yaml", "watched", "short.csv"), 2, "line 2 of `short.csv`"),
        (("load", "p.yaml", "watched", "keyless.csv"), 2, "has no column `id`"),
        (("load", "p.yaml", "watched", "nowhere.csv"), 2, "cannot be read"),
    ):
        done = millstream("table", *arguments)
        assert (done.returncode, said in done.stderr, "Traceback" in done.stderr) == (code, True, False), (arguments, done.stderr)
    assert _rows(millstream("table", "list", "p.yaml", "watched")) == []
