"""Scripts in pipelines on Spark: rejects reach their sink, failures name the line, changelogs and replays hold."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millstream.errors import RunError
from millstream.transforms.script import Script

pytestmark = pytest.mark.spark

PIPELINE = """
    sources:
      orders:
        type: memory
        rows: [{id: 1, amount: 2.5}, {id: 2, amount: -1.0}, {id: 9007199254740993, amount: 3.0}]
        schema: {id: int64, amount: float64}
    transforms:
      priced:
        type: script
        from: orders
        engine: ENGINE
        timeout: 2s
        POLICY
        script: |
          interface Order { id: bigint; amount: number }

          function invoke(row: Order) {
            if (row.amount < 0) {
              FAULT
            }
            return {...row, gross: row.amount * 2, text: `${row.id}`};
          }
        schema: {id: int64, gross: float64, text: string, amount: float64}
    sinks:
      out: {type: file, from: priced, path: out, format: json}
      bad: {type: file, path: bad, format: json}
"""


def text(engine: str, fault: str, policy: str = "on_error: {dead_letter: bad}") -> str:
    plain = PIPELINE.replace("ENGINE", engine).replace("FAULT", fault).replace("POLICY", policy)
    return plain if "bad}" in policy else plain.replace("      bad: {type: file, path: bad, format: json}\n", "")


def lines(folder: Path) -> list[dict[str, Any]]:
    files = [path for path in sorted(folder.rglob("*.json")) if not any(part[0] in "_." for part in path.relative_to(folder).parts)]
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


@pytest.mark.parametrize("engine", ["quickjs", "deno"])
@pytest.mark.parametrize("fault", ["throw new RangeError('negative');", "for (;;) {}"], ids=["exception", "loop"])
def test_rejects_reach_their_sink_with_row_and_error(pipeline: Callable, run: Callable, tmp_path: Path, engine: str, fault: str) -> None:
    run(pipeline(text(engine, fault)))
    good = sorted(lines(tmp_path / "out"), key=lambda row: row["id"])
    assert [(row["id"], row["gross"], row["text"]) for row in good] == [(1, 5.0, "1"), (2**53 + 1, 6.0, "9007199254740993")]
    (bad,) = lines(tmp_path / "bad")
    said = json.dumps(bad)
    assert "negative" in said or "did not return within 2 s" in said
    assert '\\"id\\": 2' in said


def test_a_failure_names_the_line_in_the_pipeline_s_file(pipeline: Callable, run: Callable) -> None:
    topology = pipeline(text("quickjs", "throw new RangeError('negative');", ""))
    with pytest.raises(RunError, match="MS193") as failed:
        run(topology)
    (found,) = failed.value.diagnostics
    assert "the script of `priced`: RangeError: negative" in found.message
    assert found.span is not None
    assert "throw new RangeError" in found.span.text
    assert '{"id": 2, "amount": -1.0}' in found.detail
    assert found.help.startswith("correct the script")


def test_a_limit_without_a_policy_is_an_error(pipeline: Callable, run: Callable) -> None:
    with pytest.raises(RunError, match="MS195"):
        run(pipeline(text("quickjs", "for (;;) {}", "")))


def test_a_verdict_that_a_clock_decides_counts_as_varying(pipeline: Callable, spark: Any) -> None:
    """The rows of such a node are staged once for all their readers, so that a replay repeats the verdict."""
    from types import SimpleNamespace

    from millstream.engine.lowering.nodes import Lowering

    topology = pipeline(text("quickjs", "for (;;) {}"))
    strict = pipeline(text("quickjs", "for (;;) {}", ""), "q")
    asked: Any = SimpleNamespace(nondeterministic={})
    assert Lowering.varies(asked, topology.node("priced")) is True
    assert Lowering.varies(asked, strict.node("priced")) is False


def test_types_reach_spark_and_come_back(spark: Any, tmp_path: Path) -> None:
    from millstream.clients.storage import LocalStorage
    from millstream.plan.components import NodeContext

    frame = spark.sql("""SELECT 1.50BD AS d, TIMESTAMP '2026-01-01 00:00:00.000001' AS z, TIMESTAMP_NTZ '2026-01-01 00:00:00' AS l,
        DATE '2026-01-01' AS y, array('a') AS a, map('k', 1) AS m, named_struct('f', 1L) AS s, CAST('x' AS binary) AS b,
        CAST(NULL AS string) AS n, CAST(1 AS tinyint) AS t, CAST(2 AS smallint) AS h, CAST(0.5 AS float) AS f""")
    context = NodeContext("step", tmp_path, LocalStorage(tmp_path / "ck"))
    made = Script(script="(row) => row").apply({"rows": frame}, context)
    assert made.schema.simpleString() == frame.schema.simpleString()
    assert made.collect() == frame.collect()


def test_python_says_the_same() -> None:
    from millstream import BlackholeSink, StreamEnvironment
    from millstream.plan.document import from_yaml

    env = StreamEnvironment("p")
    rows = env.from_rows([{"id": 1}, {"id": 2}])
    text = "(row: {id: bigint}) => row.id > 1n ? row : null"
    rows.script(text, schema={"id": "int64"}, timeout="5s", allow=["clock"], name="large").to(BlackholeSink(), "out")
    (component,) = [node.component for node in from_yaml(env.topology().to_yaml()).transforms]
    assert component == Script(script=text, schema={"id": "int64"}, timeout="5s", allow=["clock"])


def test_a_python_program_runs_a_script(shared: Any) -> None:
    from millstream import StreamEnvironment

    rows = StreamEnvironment("p").from_rows([{"id": 1}, {"id": 2**60}])
    found = rows.script("(row: {id: bigint}) => row.id > 1n ? {id: row.id + 1n} : null").collect()
    assert found.to_pydict() == {"id": [2**60 + 1]}


@pytest.mark.parametrize("policy", ["on_error: {dead_letter: bad}", "on_error: drop"])
def test_verdicts_are_written_down_once_where_several_sinks_read_them(
    pipeline: Callable, run: Callable, tmp_path: Path, policy: str
) -> None:
    """The dead letters and the rows are those of one computation; with one reader there is nothing to agree on."""
    run(pipeline(text("quickjs", "throw new Error('no');", policy)))
    staged = list((tmp_path / ".millstream").rglob("staged/*/priced/*.json"))
    assert len(staged) == (1 if "bad" in policy else 0)
