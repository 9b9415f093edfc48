"""A changelog without a primary key in an incremental query is found without Spark (MS177)."""

from __future__ import annotations

import pytest

from millstream.spec.loader import loads

TEXT = """
sources:
  t: {SOURCE, schema: {id: int64, g: string, _op: string}KEY}
transforms:
  f: {type: filter, from: t, where: id > 0}
  q: {type: sql, sql: "SQL"}
sinks: {out: {type: memory, from: q}}
"""
MEMORY, TOTALS = "type: memory", "SELECT g, count(*) AS n FROM {} GROUP BY g"


def found(sql: str, key: str = "", source: str = MEMORY) -> list[tuple[str, str, str]]:
    text = TEXT.replace("SQL", sql).replace("KEY", key).replace("SOURCE", source)
    return [(each.code, each.node, each.help) for each in loads(text).diagnostics if each.level == "error"]


@pytest.mark.parametrize("source", [MEMORY, "type: file, path: in, format: json"])
@pytest.mark.parametrize("name", ["t", "f"])
def test_a_changelog_without_a_key_is_found(name: str, source: str) -> None:
    assert found(TOTALS.format(name), source=source) == [("MS177", name, f"add `primary_key: COLUMN` to `{name}`")]


@pytest.mark.parametrize(
    ("sql", "key"),
    [
        (TOTALS.format("t"), ", primary_key: id"),
        (TOTALS.format("f"), ", primary_key: id"),
        ("SELECT id, g FROM t", ""),
        ("SELECT id, g FROM f WHERE id > 3", ""),
    ],
)
def test_a_key_or_a_query_that_needs_none_is_right(sql: str, key: str) -> None:
    assert found(sql, key) == []


def test_a_system_may_know_the_key() -> None:
    assert found("SELECT DISTINCT g FROM t", source="type: kafka, topic: a, bootstrap_servers: 'h:1', format: json") == []


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("from: t,", "from: q,", "MS021"),
        ("from: t,", "from: nothing,", "MS012"),
        ("where: id > 0", "where: id > 0, on_error: {dead_letter: x}", "MS031"),
    ],
)
def test_a_plan_that_is_wired_wrongly_is_not_cut(old: str, new: str, code: str) -> None:
    """A cycle has no root to look for."""
    text = TEXT.replace("SQL", TOTALS.format("f")).replace("KEY", ", primary_key: id").replace("SOURCE", MEMORY).replace(old, new)
    assert code in [finding.code for finding in loads(text).diagnostics]
