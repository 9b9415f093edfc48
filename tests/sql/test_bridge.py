"""Every private call of Spark works with this version of Spark."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Observation
from pyspark.sql import functions as F

from millstream.engine.incremental.steps import CONF
from millstream.sql.catalyst.bridge import Bridge

pytestmark = pytest.mark.spark
ROWS = "SELECT * FROM VALUES (1L, 'a'), (2L, 'b'), (2L, 'c') AS t(id, name)"


@pytest.fixture
def bridge(spark: Any) -> Bridge:
    return Bridge(spark)


def rows(bridge: Bridge, plan: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in bridge.frame(plan).collect())


def columns(bridge: Bridge, plan: Any) -> list[Any]:
    return bridge.items(plan.output())


def test_every_method_is_called_here() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    public = [name for name in vars(Bridge) if not name.startswith("_")]
    assert [name for name in public if not re.search(rf"\.{name}\b", text)] == []


def test_it_checks_itself(bridge: Bridge) -> None:
    bridge.check()


def test_rules_that_are_left_out_exist(bridge: Bridge) -> None:
    batches = bridge.items(bridge.spark._jsparkSession.sessionState().optimizer().batches())
    known = {str(rule.ruleName()) for batch in batches for rule in bridge.items(batch.rules())}
    assert set(CONF["spark.sql.optimizer.excludedRules"].split(",")) - known == set()


def test_a_struct_has_the_names_of_its_columns(bridge: Bridge) -> None:
    plan = bridge.analysed_as_is(bridge.spark.sql(ROWS))
    made = bridge.project([bridge.alias(bridge.struct(columns(bridge, plan)), "row")], plan)
    assert bridge.frame(made).schema["row"].dataType.names == ["id", "name"]  # type: ignore[attr-defined]  # a struct


def test_values_of_scala(bridge: Bridge) -> None:
    assert bridge.items(bridge.seq(["a", "b"])) == ["a", "b"]
    assert bridge.option("a").get() == "a"
    assert not bridge.option(None).isDefined()
    assert bridge.time_zone == bridge.spark.conf.get("spark.sql.session.timeZone")


def test_texts_are_parsed_and_analysed(bridge: Bridge) -> None:
    plan = bridge.with_inlined_definitions(bridge.parse("WITH c AS (SELECT id FROM a.t) SELECT * FROM c WHERE id IN (SELECT id FROM u)"))
    assert sorted(".".join(parts) for _, parts in bridge.relations(plan)) == ["a.t", "u"]
    assert len(bridge.subquery_plans(plan)) == 1
    assert bridge.definitions(plan).keys() == {
        bridge.definition_id(node) for node in bridge.nodes(plan) if bridge.kind(node) == "CTERelationRef"
    }
    frame = bridge.spark.sql(f"WITH c AS ({ROWS}) SELECT id FROM c")
    assert bridge.kind(bridge.analysed_as_is(frame)) == "WithCTE"
    assert bridge.kind(bridge.analysed(frame)) == "Project"
    assert bridge.kind(bridge.optimised(bridge.analysed(frame))) == "LocalRelation"
    assert bridge.physical(frame).output().size() == 1


def test_the_text_of_a_plan_has_all_its_columns_and_arguments(bridge: Bridge) -> None:
    plan = bridge.parse(
        f"SELECT {', '.join(f'c{number}' for number in range(40))}, array({', '.join(f'd{number}' for number in range(40))})"
    )
    assert "c39" in bridge.full_text(plan) and "d39" in bridge.full_text(plan)
    assert "c39" not in str(plan.toString())


def test_trees_are_changed(bridge: Bridge) -> None:
    plan = bridge.parse("SELECT a + 1 AS b FROM t WHERE a > (SELECT max(c) FROM t)")
    ((relation, _), *_) = bridge.relations(plan)
    frame = bridge.spark.sql("SELECT 1 AS a, 0 AS c")
    named = bridge.named("raw.t", bridge.named_by(["a.b"], bridge.analysed(frame)))
    assert rows(bridge, bridge.replaced_everywhere(plan, [(relation, named)])) == [(2,)]
    assert rows(bridge, bridge.replaced_from_top_everywhere(plan, [(relation, named)])) == [(2,)]
    assert "UnresolvedRelation [t]" in str(bridge.replaced(plan, [(relation, named)])), "not in the subquery"
    assert len(list(bridge.expressions(plan))) == 3
    column, other = bridge.expression("a"), bridge.expression("z")
    assert "'z + 1" in str(bridge.with_expressions_everywhere(plan, [(column, other)]))
    assert bridge.replaced_from_top(bridge.expression("a + a"), [(column, other)]).equals(bridge.expression("z + z"))
    (child,) = bridge.children(plan)
    assert bridge.with_children(plan, [bridge.children(child)[0]]).child().equals(bridge.children(child)[0])


def test_places_are_those_of_the_text(bridge: Bridge) -> None:
    expression = bridge.expression("1 +\n  upper(a)")
    assert bridge.origin(bridge.children(expression)[1]) == (2, 3)
    assert bridge.text_of(bridge.children(expression)[1]) == "upper(a)"
    assert bridge.origin(bridge.one_row) is None


def test_what_a_select_has(bridge: Bridge) -> None:
    plan = bridge.parse("SELECT x.*, * EXCEPT (a), id AS k, x.v, sum(id), f(2) OVER (PARTITION BY w) FROM raw.t x")
    star, excluding, named, column, total, windowed = bridge.items(plan.projectList())
    assert [bridge.item_name(item) for item in (named, column, total)] == ["k", "v", ""]
    assert bridge.names_column(windowed, {"w"}) and not bridge.names_column(windowed, {"v"})
    assert [bridge.combines_rows(item) for item in (named, total, windowed)] == [False, True, True]
    assert [bridge.is_star_of(item, ["x"]) for item in (star, excluding, column)] == [True, True, False]
    assert not bridge.is_star_of(star, ["y"]) and bridge.is_star_of(bridge.star(), [])
    names = [[bridge.items(parts) for parts in bridge.items(bridge.star_except(each, ["b"]).excepts())] for each in (star, excluding)]
    assert names == [[["b"]], [["a"], ["b"]]]
    (source,) = bridge.children(plan)
    assert (bridge.alias_name(source), bridge.name_parts(bridge.children(source)[0])) == ("x", ["raw", "t"])
    assert bridge.table_name(source) == ("raw.t", "x")


def test_joins_of_a_parsed_plan(bridge: Bridge) -> None:
    plan = bridge.parse("SELECT 1 FROM a LEFT JOIN b ON a.x = b.y JOIN c USING (z)")
    forms = {bridge.join_form(join): join for join in bridge.joins(plan)}
    assert set(forms) == {"LEFT OUTER", ""}
    assert bridge.equality(forms[""]) is None
    assert [bridge.attribute_parts(side) for side in bridge.equality(forms["LEFT OUTER"]) or ()] == [["a", "x"], ["b", "y"]]


def test_calls_of_a_parsed_plan(bridge: Bridge) -> None:
    expression = bridge.expression("f(DISTINCT x, 'a') FILTER (WHERE y)")
    call = bridge.as_call(expression)
    assert bridge.has_calls(expression) and not bridge.has_calls(bridge.expression("a + 1"))
    assert bridge.function_name(call) == "f" and bridge.is_distinct(call) and not bridge.ignores_nulls(call)
    assert bridge.text_value(bridge.arguments(call)[1]) == "a" and bridge.text_value(bridge.arguments(call)[0]) is None
    made = bridge.call("g", bridge.arguments(call)[:1], call, filtered=True, distinct=True)
    assert made.equals(bridge.expression("g(DISTINCT x) FILTER (WHERE y)")) and bridge.origin(made) == bridge.origin(expression)
    first = bridge.as_call(bridge.expression("first(x IGNORE NULLS)"))
    assert bridge.function_name(first).lower() == "first" and bridge.ignores_nulls(first)


def test_sessions_are_recognised(bridge: Bridge) -> None:
    grouped = bridge.spark.sql(
        "SELECT session_window(at, '1 second') s, count(*) n FROM VALUES (TIMESTAMP '2024-01-01') AS t(at) GROUP BY 1"
    )
    session, count = columns(bridge, bridge.analysed(grouped))
    assert bridge.is_session(session) and not bridge.is_session(count)
    assert bridge.is_session(bridge.alias(session, "s")) and not bridge.is_session(bridge.alias(session, "s", is_session=False))


def test_plans_are_built(bridge: Bridge) -> None:
    table = bridge.analysed(bridge.spark.sql(ROWS))
    key, name = columns(bridge, table)
    total = bridge.alias(bridge.count(name), "n")
    counted = bridge.aggregate([key], [key, total], table)
    assert rows(bridge, counted) == [(1, 1), (2, 2)]
    many = bridge.filter(bridge.make("GreaterThan", total.toAttribute(), bridge.expression("1L")), counted)
    assert rows(bridge, many) == [(2, 2)]
    assert rows(bridge, bridge.join(counted, bridge.one_row, "cross", None)) == [(1, 1), (2, 2)]
    same = bridge.project([bridge.alias(bridge.null_of(key.dataType()), "id", key.exprId())], bridge.one_row)
    assert columns(bridge, same)[0].exprId().equals(key.exprId()) and rows(bridge, same) == [(None,)]
    assert rows(bridge, bridge.first_rows([bridge.ascending(key)], 1, bridge.project([key], table))) == [(1,)]
    twice = bridge.expand([[key], [key]], [key], bridge.project([key], table))
    assert len(rows(bridge, twice)) == 6
    frame = bridge.spark.sql(f"SELECT id, row_number() OVER (PARTITION BY id ORDER BY name) AS r FROM ({ROWS})")
    ranked = next(node for node in bridge.nodes(bridge.analysed(frame)) if bridge.kind(node) == "Window")
    assert len(rows(bridge, bridge.window(ranked, [], bridge.children(ranked)[0]))) == 3
    hashes = bridge.project([bridge.alias(bridge.hash_of([key]), "h"), bridge.alias(bridge.hash_of([]), "z")], table)
    assert len({each for each, _ in rows(bridge, hashes)}) == 2
    assert bridge.frame(table).select(bridge.column(bridge.expression("id + 1L")).alias("x")).first() == (2,)


def test_expressions_are_taken_apart_and_put_together(bridge: Bridge) -> None:
    table = bridge.analysed(bridge.spark.sql(ROWS))
    key, name = columns(bridge, table)
    plan = bridge.with_tables(bridge.parse("SELECT a.t.id AS k FROM a.t WHERE id > 1 AND name = 'b'"), {"a.t": table})
    assert rows(bridge, plan) == [(2,)]
    (item,) = bridge.items(bridge.analysed(bridge.frame(plan)).projectList())
    assert bridge.unnamed(item).semanticEquals(key) and bridge.unnamed(key) is key
    assert (
        len(bridge.conjuncts(bridge.expression("a AND b AND c OR d"))) == 1
        and len(bridge.conjuncts(bridge.expression("a AND b AND c"))) == 3
    )
    assert bridge.substituted(bridge.make("IsNull", key), [(key, name)]).child().equals(name)
    swapped = bridge.with_expressions(bridge.project([key], table), [(key, name)])
    assert rows(bridge, swapped) == [("a",), ("b",), ("c",)]
    assert bridge.resolved("1", key.dataType()).dataType().equals(key.dataType())
    firsts = bridge.aggregate([key], [key, bridge.alias(bridge.first(name), "f")], table)
    assert len(rows(bridge, firsts)) == 2
    distinct = bridge.analysed(bridge.spark.sql(f"SELECT count(DISTINCT id) FROM ({ROWS})")).aggregateExpressions().apply(0).child()
    assert not bridge.plain_aggregate(distinct, []).isDistinct()
    assert bridge.aggregate_functions(distinct) == [distinct] and bridge.aggregate_functions(key) == []
    again = bridge.as_unresolved(distinct)
    assert bridge.function_name(again) == "count" and bridge.is_distinct(again)
    assert bridge.as_unresolved(bridge.first(name)) is None
    pair = bridge.analysed(bridge.spark.sql("SELECT named_struct('a', 1, 'b', 2) AS s"))
    assert rows(bridge, bridge.project([bridge.alias(bridge.field(columns(bridge, pair)[0], 1), "b")], pair)) == [(2,)]


def test_what_the_planner_knows(bridge: Bridge) -> None:
    spark = bridge.spark
    spark.sql(ROWS).createOrReplaceTempView("bridge_rows")
    counted = bridge.optimised(bridge.analysed(spark.sql("SELECT id, count(name) + 1 AS n FROM bridge_rows GROUP BY id")))
    keys, functions, results = bridge.aggregate_parts(counted) or ([], [], [])
    assert (len(keys), len(functions), len(results)) == (1, 1, 2)
    assert bridge.distinct_keys(counted) == [{int(columns(bridge, counted)[0].exprId().id())}]
    joined = bridge.analysed(spark.sql("SELECT 1 FROM bridge_rows a JOIN bridge_rows b ON a.id = b.id AND a.name < b.name"))
    left, right = bridge.join_keys(bridge.joins(joined)[0])
    assert len(left) == len(right) == 1
    assert bridge.uses_clock(bridge.analysed(spark.sql("SELECT now()"))) and not bridge.uses_clock(joined)
    stream = bridge.analysed(spark.readStream.format("rate").load().groupBy("value").count())
    assert "watermark" in bridge.streaming_refusal(stream, "Append") and bridge.streaming_refusal(stream, "Update") == ""
    spark.catalog.dropTempView("bridge_rows")


def test_a_join_of_streams_is_bounded_by_a_comparison_of_their_times(bridge: Bridge) -> None:
    from pyspark.sql import functions

    rate = bridge.spark.readStream.format("rate").load().withWatermark("timestamp", "1 second")
    left, right = rate.alias("a"), rate.selectExpr("timestamp AS at", "value AS v").withWatermark("at", "1 second").alias("b")
    bounds = {"value = v": False, "value = v AND timestamp > at": False, "timestamp = at": True}
    bounds["value = v AND timestamp > at AND timestamp < at + INTERVAL 1 HOUR"] = True
    for condition, bounded in bounds.items():
        (join,) = bridge.joins(bridge.analysed(left.join(right, functions.expr(condition))))
        assert bridge.bounds_state(join) == bounded, condition


def test_a_cast_widens_or_may_fail(bridge: Bridge) -> None:
    table = bridge.spark.sql(
        "SELECT cast(i AS bigint), cast(i AS decimal(10, 0)), cast(s AS int), cast(i AS tinyint) FROM VALUES (1, 'x') AS t(i, s)"
    )
    casts = [bridge.unnamed(item) for item in bridge.items(bridge.analysed(table).projectList())]
    assert [bridge.widens(cast) for cast in casts] == [True, True, False, False]


def test_physical_plans_are_changed(bridge: Bridge) -> None:
    bridge = Bridge(bridge.spark.newSession())
    bridge.spark.conf.set("spark.sql.adaptive.enabled", "false")
    rows = bridge.spark.sql(ROWS)
    grouped = bridge.physical(rows.groupBy("id", "name").count())
    narrow = bridge.with_narrow_exchange(grouped, "id", 2)
    assert bridge.is_partitioned_by(narrow, "id", 2) and not bridge.is_partitioned_by(grouped, "id", 2)
    assert narrow.execute().count() == 3
    rdd = bridge.rdd(rows)
    leaf = bridge.frame(bridge.leaf(bridge.analysed(rows).output(), rdd))
    joined = bridge.physical(bridge.spark.range(9).join(leaf.hint("shuffle_hash"), "id"))
    lazy = bridge.with_lazy_joins(joined, [int(rdd.id())])
    assert str(lazy.toString()) != str(joined.toString()) and lazy.execute().count() == 3


def test_rows_are_leaves(bridge: Bridge) -> None:
    bridge.checkpoint_all_ancestors()
    frame = bridge.spark.sql(ROWS).repartition(2, "id")
    rdd, output = bridge.rdd(frame), bridge.analysed(frame).output()
    leaf = bridge.leaf(output, rdd)
    assert bridge.is_leaf(leaf) and bridge.rdd_id(leaf) == int(rdd.id()) and len(rows(bridge, leaf)) == 3
    assert bridge.partitions(leaf) == 2
    assert len(rows(bridge, bridge.leaf(output, bridge.union_rdd([rdd, rdd], 2)))) == 6
    physical = bridge.physical(bridge.frame(leaf))
    (scan,) = bridge.scans(physical)
    assert bridge.bound(physical, [(scan, bridge.empty_rdd())]).execute().count() == 0
    assert all(not each.nullable() for each in bridge.items(bridge.with_nullability(output, frozenset({"id", "name"}))))
    assert all(bridge.nullable(each).nullable() for each in bridge.items(output))
    keyed = bridge.leaf(output, rdd, columns(bridge, leaf)[0], 2)
    assert bridge.is_partitioned_by(bridge.physical(bridge.frame(keyed)), "id", 2)
    held = [bridge.hold(output, rdd), bridge.hold_copies(output, rdd)]
    assert all(len(rows(bridge, bridge.leaf(output, each))) == 3 for each in held)
    assert sum(bridge.held_sizes({int(rdd.id()) for rdd in held}).values()) > 0


def test_observations_of_a_job_below_queries_are_completed(bridge: Bridge) -> None:
    observation = Observation()
    frame = bridge.spark.range(5).observe(observation, F.count(F.lit(1)).alias("rows"))
    bridge.rdd(frame).count()
    bridge.complete_observations(frame)
    assert observation.get == {"rows": 5}
