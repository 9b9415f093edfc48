"""A changed plan on old state: what is the same query goes on, another one is refused with what `--reset` costs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millstream import committed_files
from millstream.engine.incremental.maintenance import Maintenance
from millstream.errors import RunError
from millstream.observe.report import Report
from millstream.plan.topology import Topology
from millstream.sql.check.sameness import meaning_of

SQL = "SELECT k, max(v) AS m FROM t WHERE k <> 'X' GROUP BY k HAVING count(*) > 0"
SAME = [
    "select k, max(v) as m\n  -- the largest\n  from t where k <> 'X' /* not these */ group by k having count(*) > 0",
    "SELECT k,max(v) AS m FROM t WHERE k <> 'X' GROUP BY k HAVING count( * )>0",
]
OTHER = [SQL.replace("'X'", "'x'"), SQL.replace("max", "min"), SQL.replace("0", "1"), SQL.replace("AS m", "AS `m`")]


@pytest.mark.parametrize("text", SAME)
def test_comments_white_space_and_the_case_of_words_do_not_count(text: str) -> None:
    assert meaning_of(text) == meaning_of(SQL)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *((SQL, text) for text in OTHER),
        ("SELECT m.Key FROM t", "SELECT m.key FROM t"),
        ("SELECT v:Price FROM t", "SELECT v:price FROM t"),
        ("SELECT 'a", "SELECT  'a"),
    ],
)
def test_everything_else_counts(one: str, other: str) -> None:
    assert meaning_of(one) != meaning_of(other)


@pytest.fixture
def start(pipeline: Callable[..., Topology], run: Callable[..., Report]) -> Callable[..., Report]:
    """Run a node over a table of files; a second call continues with one more file."""

    def go(rows: list[dict[str, Any]], options: str, **how: Any) -> Report:
        folder = Path("in")
        folder.mkdir(exist_ok=True)
        (folder / f"{len(list(folder.iterdir()))}.json").write_text("\n".join(map(json.dumps, rows)))
        return run(
            pipeline(f"""
                name: p
                settings: {{trigger: {{type: available_now}}, checkpoint: ck}}
                sources: {{t: {{type: file, path: in, format: json, schema: {{k: string, v: int64}}}}}}
                transforms: {{q: {{type: sql, {options}}}}}
                sinks: {{out: {{type: file, from: q, path: out, format: json}}}}
            """),
            **how,
        )

    return go


def changes() -> list[dict[str, Any]]:
    return [json.loads(line) for file in committed_files("out") for line in Path(file).read_text().splitlines()]


@pytest.mark.spark
def test_the_same_query_in_another_form_goes_on(start: Callable[..., Report]) -> None:
    start([{"k": "a", "v": 1}], f"sql: {json.dumps(SQL)}")
    start([{"k": "a", "v": 3}], f"sql: {json.dumps(SAME[0])}")
    assert changes() == [{"k": "a", "m": 1, "_op": "i"}, {"k": "a", "m": 3, "_op": "u"}]


@pytest.mark.spark
def test_another_query_is_refused_with_what_a_reset_costs(start: Callable[..., Report]) -> None:
    start([{"k": "a", "v": 1}, {"k": "b", "v": 1}], f"sql: {json.dumps(SQL)}")
    with pytest.raises(RunError) as refused:
        start([], f"sql: {json.dumps(OTHER[0])}", flags=True)
    (found,) = refused.value.diagnostics
    assert found.code == "MS053"
    assert "`--reset q` drops 2 rows of state (" in found.help, found.help
    assert "reads `t` from the start again, and `out` will receive rows again" in found.help


@pytest.mark.spark
def test_another_ttl_goes_on_with_the_stored_rows(start: Callable[..., Report], monkeypatch: pytest.MonkeyPatch) -> None:
    sql = 'sql: "SELECT k, count(*) AS n FROM t GROUP BY k"'
    hour, step, now = 3_600_000, Maintenance.step, [0]
    monkeypatch.setattr(Maintenance, "step", lambda *given, **how: step(*given, **{**how, "time_ms": now[0]}))
    start([{"k": "a", "v": 1}], f"{sql}, ttl: 10h")
    now[0] = 11 * hour
    start([{"k": "b", "v": 1}], f"{sql}, ttl: 30h")
    assert [row["_op"] for row in changes()] == ["i", "i"], "the row of the first epoch is kept longer"
    now[0] = 14 * hour
    start([{"k": "c", "v": 1}], f"{sql}, ttl: 4h")
    assert {(row["k"], row["_op"]) for row in changes()[2:]} == {("a", "d"), ("c", "i")}
    with pytest.raises(RunError, match=r"MS053(?s:.*)`ttl` was `4h`, is not set"):
        start([], sql)
