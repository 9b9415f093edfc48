"""Functions that Millstream adds are known to the check, and run in every node with SQL."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from millstream.errors import RunError
from millstream.observe.report import Report
from millstream.plan.topology import Topology
from millstream.spec.loader import loads
from millstream.sql.own_functions import as_called

SOURCE = "sources: {g: {type: generator, rows: 4, fields: {id: {type: sequence}}}}\n"
SINK = "sinks: {out: {type: memory, from: t}}\n"
STEPS = [
    '{type: sql, sql: "SELECT binary_to_hex(from_base58(to_base58(string(id)))) AS found FROM g WHERE is_json(string(id))"}',
    '{type: select, from: g, columns: {found: "binary_to_hex(from_base58(to_base58(string(id))))"}}',
    "{type: filter, from: w, where: \"to_u256(id) >= to_u256(0) AND split_index(found, 'x', 1) IS NOT NULL\"}",
]


@pytest.mark.spark
@pytest.mark.parametrize("step", STEPS)
def test_they_run_in_nodes(step: str, pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    column = '{type: with_columns, from: g, columns: {found: "binary_to_hex(string(id))"}}'
    topology = pipeline(
        f"{SOURCE}transforms:\n  w: {column}\n  t: {step}\n{SINK}".replace("  w:", "  w:" if "from: w" in step else "  unused:")
    )
    run(topology)
    assert sorted(topology.node("out").component.table()["found"].to_pylist()) == ["0x30", "0x31", "0x32", "0x33"]


@pytest.mark.spark
def test_a_query_that_is_kept_up_to_date_groups_by_them(pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    query = "SELECT u256_to_string(u256_mod(to_u256(id), to_u256(2))) AS k, count(*) AS n FROM g GROUP BY ALL HAVING count(*) > 1"
    topology = pipeline(f'{SOURCE}transforms: {{t: {{type: sql, sql: "{query}"}}}}\n{SINK}')
    run(topology)
    rows = topology.node("out").component.table().to_pylist()
    assert {row["k"]: row["n"] for row in rows} == {"0": 2, "1": 2}


@pytest.mark.spark
def test_a_row_that_fails_is_reported_where_the_function_is_called(pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    text = f'{SOURCE}transforms:\n  t: {{type: sql, sql: "SELECT id, u256_sub(to_u256(1), to_u256(id)) AS v FROM g"}}\n{SINK}'
    with pytest.raises(RunError) as failed:
        run(pipeline(text))
    (found,) = failed.value.diagnostics
    assert (found.code, found.message, found.node) == ("MS067", "`t` failed on a row: u256_sub: overflow", "t")
    assert found.span is not None and found.span.column == text.splitlines()[2].index("u256_sub") + 1
    topology = pipeline(text.replace('FROM g"', 'FROM g", on_error: drop') + "settings: {checkpoint: other}\n")
    assert run(topology).nodes["t"].rejected == 2


@pytest.mark.spark
def test_a_new_session_of_the_same_jvm_has_them(spark: SparkSession) -> None:
    assert spark.newSession().sql("SELECT json_array(1, 'a') AS found").collect()[0].found == '[1,"a"]'


@pytest.mark.spark
def test_times_in_json_have_microseconds(spark: SparkSession) -> None:
    moment, local = "TIMESTAMP '2026-01-01 00:00:00.123456Z'", "TIMESTAMP_NTZ '2026-01-01 00:00:00.123456'"
    (row,) = spark.sql(f"SELECT json_array({moment}, {local}) AS a, json_object('a', {moment}) AS o").collect()
    assert (row.a, row.o) == ('["2026-01-01T00:00:00.123456Z","2026-01-01T00:00:00.123456"]', '{"a":"2026-01-01T00:00:00.123456Z"}')


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("hex(static_invoke(millstream.Encodings.fromBase58(s)))", "hex(from_base58(s))"),
        ("static_invoke(millstream.Encodings.fromBase58(concat(s, ')(')))", "from_base58(concat(s, ')('))"),
        (
            "static_invoke(millstream.Encodings.fromBase58(static_invoke(millstream.Encodings.toBase58(a))))",
            "from_base58(to_base58(a))",
        ),
        ("static_invoke(millstream.Other.method(a))", "static_invoke(millstream.Other.method(a))"),
        ("upper(a)", "upper(a)"),
    ],
)
def test_a_dead_letter_says_what_was_called(text: str, shown: str) -> None:
    assert as_called(text) == shown


def problems(call: str, functions: str = "") -> list[str]:
    checked = loads(f'{SOURCE}transforms: {{t: {{type: sql, sql: "SELECT {call} AS found FROM g"}}}}\n{SINK}{functions}')
    return [f"{each.code} {each.message} {each.help}" for each in (*checked.errors, *checked.warnings)]


def test_the_check_knows_their_names() -> None:
    assert problems("keccak256(CAST(id AS STRING)), json_value('{}', '$'), json_object('a', id), _gs_xxhash('a')") == []
    assert ["did you mean `keccak256`?" in each for each in problems("keccak265(CAST(id AS STRING))")] == [True]


def test_a_function_of_the_users_cannot_have_such_a_name(pipeline: Callable[..., Topology]) -> None:
    (found,) = problems("1", "functions: {geohash: {function: 'json:dumps', returns: string}}")
    assert found.startswith("MS019 `geohash` is a function of Millstream's own")
