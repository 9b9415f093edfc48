"""`millstream preview` shows rows of a node from its real sources, and changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.warm import Done

pytestmark = pytest.mark.spark
PIPELINE = """
sources:
  rows: {type: file, path: in, format: json, schema: {id: int64, k: string}, mode: {type: bounded}, on_error: {dead_letter: bad}}
  more: {type: generator, partitions: 1, fields: {id: {type: sequence}}}
transforms:
  big: {type: filter, from: rows, where: id > 1}
  totals: {type: aggregate, from: big, key_by: [k], aggregate: {n: count(*)}}
sinks:
  out: {type: file, from: totals, path: out, format: json}
  bad: {type: file, path: bad, format: json}
  all: {type: file, from: more, path: all, format: json}
settings: {store: {backend: sqlite}}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "p.yaml").write_text(PIPELINE)
    (tmp_path / "in").mkdir()
    lines = [json.dumps({"id": i, "k": "ab"[i % 2]}) for i in range(6)]
    (tmp_path / "in/0.json").write_text("\n".join([*lines, "no json"]))
    return tmp_path


def test_rows_of_a_node_are_shown_and_nothing_is_written(project: Path, warm: Callable[..., Done]) -> None:
    before = sorted(path.name for path in project.iterdir())
    done = warm("preview", "p.yaml", "big", "--rows", "3", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [2, 3, 4]
    assert "3 rows of `big`: the first ones; nothing was written" in done.stderr
    assert sorted(path.name for path in project.iterdir()) == before


def test_without_a_node_it_is_the_input_of_the_first_sink_and_an_end_is_told(project: Path, warm: Callable[..., Done]) -> None:
    done = warm("preview", "p.yaml", "--format", "json")
    rows = sorted((row["k"], row["n"]) for row in map(json.loads, done.stdout.splitlines()))
    assert rows == [("a", 2), ("b", 2)]
    assert "2 rows of `totals`: all there are" in done.stderr


def test_an_input_without_end_is_read_as_far_as_asked(project: Path, warm: Callable[..., Done]) -> None:
    done = warm("preview", "p.yaml", "all", "--rows", "4", "--format", "json")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [{"id": number} for number in range(4)]


def test_a_misspelt_node_is_said_with_the_nearest_name(project: Path, warm: Callable[..., Done]) -> None:
    done = warm("preview", "p.yaml", "bgi")
    assert done.returncode == 78
    assert "did you mean `big`" in done.stderr


def test_a_sink_for_dead_letters_is_refused_with_the_nodes_that_send_them(project: Path, warm: Callable[..., Done]) -> None:
    done = warm("preview", "p.yaml", "bad")
    assert "MS190" in done.stderr, done.stderr
    assert "look at the rows of `rows`" in done.stderr


def test_times_have_microseconds_as_in_tap(tmp_path: Path, warm: Callable[..., Done]) -> None:
    (tmp_path / "p.yaml").write_text("""
sources: {g: {type: generator, rows: 1, fields: {id: {type: sequence}}}}
transforms: {at: {type: sql, sql: "SELECT TIMESTAMP '2026-01-02 03:04:05.678901' AS at FROM g"}}
sinks: {out: {type: blackhole, from: at}}
""")
    assert json.loads(warm("preview", "p.yaml", "--format", "json").stdout) == {"at": "2026-01-02T03:04:05.678901Z"}


def test_a_table_that_the_stream_fills_is_refused(tmp_path: Path, warm: Callable[..., Done]) -> None:
    (tmp_path / "p.yaml").write_text("""
sources: {people: {type: generator, rows: 3, fields: {id: {type: sequence}}}}
transforms:
  seen: {type: dynamic_table, backend: sqlite, path: seen.db, key: id, columns: {n: int64}, sql: "SELECT id, 1L AS n FROM people"}
  known: {type: sql, sql: "SELECT p.id, s.n FROM people p LEFT JOIN seen s ON p.id = s.id"}
sinks: {out: {type: blackhole, from: known}}
""")
    done = warm("preview", "p.yaml")
    assert "MS190" in done.stderr, done.stderr
    assert not (tmp_path / "seen.db").exists()


def test_a_table_that_rows_are_looked_up_in_is_not_made(tmp_path: Path, warm: Callable[..., Done]) -> None:
    (tmp_path / "p.yaml").write_text("""
sources: {people: {type: generator, rows: 3, fields: {id: {type: sequence}}}}
transforms:
  tiers: {type: dynamic_table, backend: sqlite, path: tiers.db, key: id, columns: {n: int64}}
  known: {type: sql, sql: "SELECT p.id, t.n FROM people p LEFT JOIN tiers t ON p.id = t.id"}
sinks: {out: {type: blackhole, from: known}}
""")
    warm("preview", "p.yaml")
    assert [path.name for path in tmp_path.iterdir()] == ["p.yaml"]
