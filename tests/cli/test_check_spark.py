"""`check --spark` asks Spark; later checks without a JVM repeat its answers while nothing has changed."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from millstream.checkpoint.layout import Checkpoint
from millstream.engine.offline.preview import view
from millstream.errors import Diagnostic
from millstream.plan.topology import Topology
from millstream.rules.verdicts import recall, store

TEXT = """
    name: p
    sources:
      t: {type: file, path: in, format: json, schema: {k: string, v: int64}, mode: {type: bounded}}
    transforms:
      right: {type: sql, sql: "SELECT k, sum(v) AS s FROM t GROUP BY k HAVING sum(v) > 3"}
      wrong:
        type: sql
        sql: |
          SELECT k,
                 date_add(array(v), 3) AS d
          FROM t
    sinks:
      a: {type: print, from: right}
      b: {type: print, from: wrong}
"""
PLACE = (10, 14)


def _check(warm: Callable[..., object], *words: str) -> dict[str, object]:
    done = warm("check", "p.yaml", "--format", "json", *words)
    found: dict[str, object] = json.loads(done.stdout)["files"][0]  # type: ignore[attr-defined]  # a completed process
    return found


@pytest.mark.spark
def test_what_spark_says_is_repeated_until_the_query_changes(
    warm: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(textwrap.dedent(TEXT).lstrip())
    assert _check(warm)["unverified"] == ["right", "wrong"]
    told = _check(warm, "--spark")["errors"]
    monkeypatch.setattr("millstream.engine.offline.preview.view", lambda *_, **__: pytest.fail("Spark is asked"))
    file.write_text("# moved by a line\n" + file.read_text())
    again = _check(warm)
    assert again["verified"] == ["right", "wrong"]
    for errors, shift in ((told, 0), (again["errors"], 1)):
        (error,) = errors  # type: ignore[misc]  # a list
        assert (error["code"], error["node"], error["line"], error["column"]) == ("MS066", "wrong", PLACE[0] + shift, PLACE[1])
    file.write_text(file.read_text().replace("array(v)", "current_date()"))
    mended = _check(warm)
    assert mended["errors"] == []
    assert mended["unverified"] == ["wrong"]


def test_other_columns_of_an_input_make_a_verdict_void(pipeline: Callable[..., Topology]) -> None:
    store(pipeline(TEXT), (), ("right", "wrong"))
    assert recall(pipeline(TEXT)).verified == {"right", "wrong"}
    assert recall(pipeline(TEXT.replace("v: int64", "v: double"))).verified == set()


def test_an_error_without_a_node_leaves_everything_unverified(pipeline: Callable[..., Topology]) -> None:
    store(pipeline(TEXT), [Diagnostic("MS060", "the source cannot be read")], ("right", "wrong"))
    assert recall(pipeline(TEXT)).verified == set()


def test_other_settings_of_spark_make_a_verdict_void(pipeline: Callable[..., Topology]) -> None:
    store(pipeline(TEXT), (), ("right", "wrong"))
    settings = "    settings: {spark: {spark.sql.ansi.enabled: 'false'}}\n"
    assert recall(pipeline(TEXT + settings)).verified == set()


@pytest.mark.spark
def test_a_plan_says_what_a_run_would_refuse(pipeline: Callable[..., Topology], shared: object) -> None:
    """The state of an incremental query is compiled: types that it cannot keep are known before a run."""
    topology = pipeline(TEXT.replace("date_add(array(v), 3) AS d", "parse_json(k) AS j").replace("FROM t\n", "FROM t ORDER BY k LIMIT 2\n"))
    assert [found.node for found in view(topology).findings] == ["wrong"]


def test_the_verdicts_are_not_part_of_the_checkpoint(pipeline: Callable[..., Topology], tmp_path: Path) -> None:
    """So that a check does not begin a checkpoint."""
    from millstream.clients.storage import open_storage
    from millstream.plan.run_options import checkpoint_of

    topology = pipeline(TEXT)
    store(topology, (), ())
    assert Checkpoint(open_storage(checkpoint_of(topology)), "p").queries() == []
    assert [path.name for path in (tmp_path / ".millstream").iterdir()] == ["p.verdicts.json"]


@pytest.mark.spark
@pytest.mark.parametrize(("key", "codes"), [("k", []), ("s", ["MS178"])])
def test_a_changelog_and_the_key_of_a_sink_are_checked(
    key: str, codes: list[str], pipeline: Callable[..., Topology], shared: object
) -> None:
    topology = pipeline(f"""
        sources: {{t: {{type: memory, rows: [{{k: a, v: 1, _op: i}}], primary_key: k}}}}
        transforms: {{q: {{type: sql, sql: "SELECT k, max(v) AS s FROM t GROUP BY k"}}}}
        sinks: {{out: {{type: memory, from: q, primary_key: {key}}}}}
    """)
    seen = view(topology)
    assert [found.code for found in seen.findings if found.level == "error"] == codes
    assert codes or seen.queries[0].operators
