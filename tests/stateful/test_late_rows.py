"""Rows that come after their window has closed: counted row by row, dropped, kept apart, or a reason to stop."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millstream import committed_files
from millstream.errors import RunError

pytestmark = pytest.mark.spark
PIPELINE = """
sources:
  clicks:
    type: memory
    rows_per_epoch: 2
    schema: {user: string, at: timestamp}
    rows: ROWS
    event_time: {column: at, watermark: 10s}
transforms:
  counted: {type: window, from: clicks, key_by: [user], window: WINDOW, aggregate: {n: count(*)}, OPTIONS}
sinks:
  out: {type: memory, from: counted}
"""
TUMBLING = "{type: tumbling, size: 1m}"
ROWS = [("a", 1), ("b", 2), ("a", 200), ("a", 210), ("a", 220), ("a", 230), ("a", 3), ("a", 4), ("b", 5), ("a", 300)]
"""The third epoch closes the first minute; the rows of the fourth, and one of the fifth, come too late for it."""


def text(options: str, window: str = TUMBLING) -> str:
    rows = [{"user": user, "at": f"2024-01-01T00:{second // 60:02}:{second % 60:02}Z"} for user, second in ROWS]
    return PIPELINE.replace("ROWS", json.dumps(rows)).replace("WINDOW", window).replace(", OPTIONS", f", {options}" if options else "")


def counts(topology: Any) -> int:
    return sum(topology.node("out").component.table()["n"].to_pylist())


def test_in_a_bounded_input_nothing_is_late_unless_asked(pipeline: Callable[..., Any], run: Callable[..., Any]) -> None:
    topology = pipeline(text(""))
    report = run(topology)
    assert counts(topology) == len(ROWS) and report.nodes["counted"].late == 0


def test_late_rows_are_counted_one_by_one(pipeline: Callable[..., Any], run: Callable[..., Any]) -> None:
    topology = pipeline(text("late: drop"))
    report = run(topology)
    assert counts(topology) == len(ROWS) - 3, "the same two groups, and three rows"
    assert report.nodes["counted"].late == 3


def test_late_rows_go_to_a_sink_of_their_own(pipeline: Callable[..., Any], run: Callable[..., Any]) -> None:
    topology = pipeline(text("late: {dead_letter: belated}") + "  belated: {type: file, path: late, format: json}\n")
    report = run(topology)
    letters = [json.loads(line) for file in committed_files("late") for line in Path(file).read_text().splitlines()]
    assert sorted(json.loads(letter["raw"])["user"] for letter in letters) == ["a", "a", "b"]
    assert all(letter["node"] == "counted" and "closed at 2024-01-01 00:01:00" in letter["error"] for letter in letters)
    assert report.nodes["counted"].late == 3 and counts(topology) == len(ROWS) - 3


def test_a_late_row_can_stop_the_pipeline_before_anything_of_its_epoch_is_written(
    pipeline: Callable[..., Any], run: Callable[..., Any]
) -> None:
    topology = pipeline(text("late: fail"))
    with pytest.raises(RunError, match=r"MS071.*`counted`: 2 rows came too late"):
        run(topology)
    assert counts(topology) == 2, "the first minute, closed before"


def test_allowed_lateness_waits_longer(pipeline: Callable[..., Any], run: Callable[..., Any]) -> None:
    topology = pipeline(text("late: drop, allowed_lateness: 5m"))
    report = run(topology)
    assert counts(topology) == len(ROWS) and report.nodes["counted"].late == 0


@pytest.mark.parametrize(
    "window", ["{type: sliding, size: 1m, slide: 30s}", "{type: session, gap: 30s}", "{type: tumbling, size: 1d, time_zone: UTC}"]
)
def test_every_kind_of_window_tells_its_late_rows(pipeline: Callable[..., Any], run: Callable[..., Any], window: str) -> None:
    topology = pipeline(text("late: drop", window))
    report = run(topology)
    assert report.nodes["counted"].late == (0 if "1d" in window else 3)


COUNTED = "SELECT user, window(at, '1 minute') w, count(*) n"
LONGER = "SELECT user, window(at, '2 minutes') v FROM clicks GROUP BY 1, 2"
SQL = {
    "WHERE": (f"{COUNTED} FROM clicks WHERE user = 'a' GROUP BY 1, 2", 2),
    "a lateral view": (f"{COUNTED} FROM clicks LATERAL VIEW explode(array(0, 1, 2)) e AS x WHERE x > 0 GROUP BY 1, 2", 3),
    "other names": (
        "WITH c AS (SELECT user u, at t FROM clicks WHERE user = 'a') SELECT u, window(t, '1 minute') w, count(*) n FROM c GROUP BY 1, 2",
        2,
    ),
    "sliding windows": ("SELECT user, window(at, '1 minute', '30 seconds') w, count(*) n FROM clicks GROUP BY 1, 2", 3),
    "sessions": ("SELECT user, session_window(at, '30 seconds') w, count(*) n FROM clicks GROUP BY 1, 2", 3),
    "rows that are read twice": (f"{COUNTED} FROM (SELECT * FROM clicks UNION ALL SELECT * FROM clicks) GROUP BY 1, 2", 3),
    "a fixed table": (f"{COUNTED} FROM clicks JOIN (VALUES ('a'), ('c')) AS d(u) ON user = u GROUP BY 1, 2", 2),
    "a lateral function": (f"{COUNTED} FROM clicks, LATERAL explode(array(1, 2)) AS e(x) GROUP BY 1, 2", 3),
    "groups of several sizes": (
        f"{COUNTED} FROM clicks GROUP BY GROUPING SETS ((user, window(at, '1 minute')), (window(at, '1 minute')))",
        3,
    ),
    "rows beside their windows": (
        f"SELECT c.user, x.w, n FROM clicks c JOIN ({COUNTED} FROM clicks GROUP BY 1, 2) x ON c.user = x.user",
        3,
    ),
    "windows of two sizes": (
        f"SELECT x.user, w, n FROM ({COUNTED} FROM clicks GROUP BY 1, 2) x JOIN ({LONGER}) y ON x.user = y.user AND w.start = v.start",
        3,
    ),
}
"""The query, and how many of its rows are late."""


def sql(query: str, options: str) -> str:
    source = text("").split("transforms:")[0]
    return f'{source}transforms:\n  counted: {{type: sql, sql: "{query}", {options}}}\nsinks:\n  out: {{type: memory, from: counted}}\n'


@pytest.mark.parametrize("name", SQL)
def test_sql_tells_its_late_rows_too(pipeline: Callable[..., Any], run: Callable[..., Any], name: str) -> None:
    """A row that the query leaves out is missing nowhere, and a row of several windows is one row."""
    query, late = SQL[name]
    assert run(pipeline(sql(query, "late: drop"))).nodes["counted"].late == late


@pytest.mark.parametrize("name", ["a lateral view", "rows beside their windows"])
def test_late_rows_of_sql_go_to_a_sink(pipeline: Callable[..., Any], run: Callable[..., Any], name: str) -> None:
    topology = pipeline(sql(SQL[name][0], "late: {dead_letter: belated}") + "  belated: {type: memory}\n")
    run(topology)
    letters = topology.node("belated").component.table().to_pylist()
    assert sorted(json.loads(each["raw"])["user"] for each in letters) == ["a", "a", "b"]
    assert all("closed at 2024-01-01 00:01:00" in each["error"] for each in letters)


JOINED = (
    "SELECT c.user, window(c.at, '1 minute') w, count(*) n FROM clicks c JOIN clicks d ON c.user = d.user"
    " AND d.at BETWEEN c.at AND c.at + INTERVAL 9 SECONDS GROUP BY 1, 2"
)


def test_late_rows_of_windows_over_a_join_cannot_be_isolated(pipeline: Callable[..., Any], run: Callable[..., Any]) -> None:
    with pytest.raises(RunError, match=r"MS036.*late rows of `counted` cannot be isolated"):
        run(pipeline(sql(JOINED, "late: {dead_letter: belated}") + "  belated: {type: memory}\n"))


def test_late_rows_of_windows_over_a_join_are_not_passed_over(pipeline: Callable[..., Any], run: Callable[..., Any]) -> None:
    """Also if rows of another input can be found, and none of them is late."""
    rows = [
        {"user": user, "at": f"2024-01-01T00:{second // 60:02}:{second % 60:02}Z"} for user, second in sorted(ROWS, key=lambda row: row[1])
    ]
    options = "schema: {user: string, at: timestamp}, rows_per_epoch: 4, event_time: {column: at, watermark: 10s}"
    other = f"  early: {{type: memory, {options}, rows: {json.dumps(rows)}}}\n"
    query = f"{COUNTED} FROM early GROUP BY 1, 2 UNION ALL {JOINED}"
    document = sql(query, "late: fail").replace("transforms:", f"{other}transforms:")
    with pytest.raises(RunError, match=r"MS071.*`counted`: rows came too late; Spark dropped \d+ rows and results"):
        run(pipeline(document))
