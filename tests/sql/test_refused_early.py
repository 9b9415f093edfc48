"""What a stream cannot answer is refused by `check` where the text tells it, and else before the first epoch is planned."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.servers.postgres import Database

from millstream.connectors.memory.sink import MemorySink
from millstream.errors import MillstreamError, SpecError
from millstream.observe.report import Report
from millstream.plan.topology import Topology

SOURCE = "t: {type: memory, rows: [{id: 1, k: a, v: 1}, {id: 2, k: a, v: 3}], rows_per_epoch: 1}"


@pytest.mark.parametrize("step", ["select, columns: {m: mean(v)}", "with_columns, columns: {m: max(v)}", "filter, where: v > mean(v)"])
def test_an_expression_over_rows_needs_no_more_than_one(step: str, pipeline: Callable[..., Topology]) -> None:
    with pytest.raises(SpecError, match=r"MS030.*the aggregate \w+ needs more than one row"):
        pipeline(f"""
            sources: {{{SOURCE}}}
            transforms: {{q: {{type: {step}, from: t}}}}
            sinks: {{out: {{type: blackhole, from: q}}}}
        """)


def test_a_table_and_a_definition_may_be_written_in_another_case(pipeline: Callable[..., Topology]) -> None:
    topology = pipeline(f"""
        sources: {{{SOURCE}}}
        transforms: {{q: {{type: sql, sql: "WITH Big AS (SELECT * FROM T) SELECT id FROM big"}}}}
        sinks: {{out: {{type: blackhole, from: q}}}}
    """)
    assert topology.node("q").inputs == ("t",)


@pytest.mark.spark
def test_an_aggregate_that_check_does_not_know_is_kept_up_to_date(
    pipeline: Callable[..., Topology], run: Callable[..., Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millstream.sql.check.query.AGGREGATES", frozenset())
    topology = pipeline(f"""
        sources: {{{SOURCE}}}
        transforms: {{q: {{type: sql, sql: "SELECT try_avg(v) AS unknown_to_check FROM t"}}}}
        sinks: {{out: {{type: memory, from: q}}, other: {{type: blackhole, from: t}}}}
    """)
    run(topology)
    sink = topology.node("out").component
    assert isinstance(sink, MemorySink)
    assert sink.rows()[-1] == {"unknown_to_check": 2.0, "_op": "u"}


@pytest.mark.spark
def test_a_key_that_was_missing_can_be_added(pipeline: Callable[..., Topology], run: Callable[..., Report], postgres: Database) -> None:
    schema = postgres.schema()

    def totals(options: str) -> Topology:
        return pipeline(f"""
            connections: {{postgres: {postgres.connection}}}
            sources: {{{SOURCE}}}
            transforms: {{q: {{type: sql, sql: "SELECT k, v, 'u' AS _op FROM t"}}}}
            sinks: {{out: {{type: postgres, from: q, schema: {schema}, table: sums{options}}}}}
            settings: {{checkpoint: ck}}
        """)

    with pytest.raises(MillstreamError, match="MS118"):
        run(totals(""))
    run(totals(", primary_key: k"))
    assert postgres.rows(f"SELECT k, v FROM {schema}.sums") == [("a", 3)]
