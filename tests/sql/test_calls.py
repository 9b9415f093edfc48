"""Calls in a parsed plan are rewritten as if the user had written what they become; everything else stays."""

from typing import Any

import pytest

from millstream.sql.catalyst import names
from millstream.sql.catalyst.aggregates import stream_aggregates
from millstream.sql.catalyst.bridge import Bridge
from millstream.sql.catalyst.calls import rewrite_expression, rewrite_plan
from millstream.sql.catalyst.user_aggregates import collecting
from millstream.sql.check.calls import mentions

NAMES = ["my_median", "wavg"]
MEDIAN = "_scalar_of_my_median(collect_list({}))"
WAVG = "_scalar_of_wavg(collect_list(named_struct('_millstream_1', x, '_millstream_2', y)))"


@pytest.fixture
def bridge(spark: Any) -> Bridge:
    return Bridge(spark)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("written", "becomes"),
    [
        ("my_median(x)", MEDIAN.format("x")),
        ("MY_Median( x )", MEDIAN.format("x")),
        ("`my_median`(x)", MEDIAN.format("x")),
        ("my_median(DISTINCT x)", MEDIAN.format("DISTINCT x")),
        ("my_median(x) FILTER (WHERE (x > 0))", "_scalar_of_my_median(collect_list(x) FILTER (WHERE (x > 0)))"),
        ("my_median(x) OVER (PARTITION BY k)", "_scalar_of_my_median(collect_list(x) OVER (PARTITION BY k))"),
        ("my_median(x) OVER w", "_scalar_of_my_median(collect_list(x) OVER w)"),
        ("my_median(x) FILTER (WHERE a) OVER w", "_scalar_of_my_median(collect_list(x) FILTER (WHERE a) OVER w)"),
        ("round(my_median(abs(x)), 1)", "round(_scalar_of_my_median(collect_list(abs(x))), 1)"),
        ("wavg(x, y)", WAVG),
        ("wavg(DISTINCT a[f(1, 2)], y)", WAVG.replace("(named", "(DISTINCT named").replace("x,", "a[f(1, 2)],")),
        ("wavg(my_median(x),my_median(y))", WAVG.replace("x,", f"{MEDIAN.format('x')},").replace("y)", f"{MEDIAN.format('y')})")),
        ("my_median(x) FILTER (WHERE wavg(x, y) > 1)", f"_scalar_of_my_median(collect_list(x) FILTER (WHERE {WAVG} > 1))"),
        ("'my_median(x)'", "'my_median(x)'"),
        ("my_median", "my_median"),
        ("t.my_median(x)", "t.my_median(x)"),
        ("my_median()", "my_median()"),
        ("other_my_median(x)", "other_my_median(x)"),
    ],
)
def test_an_aggregate_of_the_user_collects_its_arguments(bridge: Bridge, written: str, becomes: str) -> None:
    rewritten = rewrite_expression(bridge, bridge.expression(written), collecting(NAMES))
    assert rewritten.equals(bridge.expression(becomes)), rewritten.toString()


@pytest.mark.spark
@pytest.mark.parametrize(
    ("written", "becomes"),
    [
        ("count(DISTINCT a)", "bigint(size(collect_set(a)))"),
        ("count(DISTINCT a) FILTER (WHERE b) + 1", "bigint(size(collect_set(a) FILTER (WHERE b))) + 1"),
        ("count(DISTINCT a, b)", "bigint(size(collect_set(if(a IS NULL OR b IS NULL, NULL, `struct`(a, b)))))"),
        ("count(a)", "count(a)"),
        ("count(DISTINCT a) OVER (PARTITION BY k)", "count(DISTINCT a) OVER (PARTITION BY k)"),
        ("Top_K(a, 3)", "slice(sort_array(collect_list(a), false), 1, 3)"),
        ("top_k(DISTINCT a, 3) FILTER (WHERE b)", "slice(sort_array(collect_set(a) FILTER (WHERE b), false), 1, 3)"),
        (
            "top_k(a, 3, b)",
            "transform(slice(sort_array(collect_list(named_struct('by', b, 'value', a)), false), 1, 3), pair -> pair.value)",
        ),
        ("first(a)", "min_by(a, `struct`(at, a))"),
        ("last_value(a) FILTER (WHERE b)", "max_by(a, `struct`(at, a)) FILTER (WHERE b)"),
    ],
)
def test_aggregates_that_streams_lack_are_written_with_others(bridge: Bridge, written: str, becomes: str) -> None:
    rewritten = rewrite_expression(bridge, bridge.expression(written), stream_aggregates("at"))
    assert rewritten.equals(bridge.expression(becomes)), rewritten.toString()


@pytest.mark.spark
@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("my_median(x)", "my_median(x)"),
        ("My_median( `x` )", "My_median( `x` )"),
        ("my_median(x) m", "m"),
        ("my_median(x) + 1", "my_median(x) + 1"),
        ("my_median(x) FILTER (WHERE x > 0)", "my_median(x) FILTER (WHERE x > 0)"),
        ("my_median(x).tier", "tier"),
    ],
)
def test_a_column_without_a_name_is_called_as_it_was_written(bridge: Bridge, written: str, name: str) -> None:
    plan = rewrite_plan(bridge, names.parse(bridge, f"SELECT k, {written} FROM t GROUP BY k"), collecting(NAMES))
    item = bridge.items(plan.aggregateExpressions())[1]
    assert (bridge.kind(item), item.name()) == ("Alias", name)


@pytest.mark.spark
def test_calls_are_found_wherever_they_stand(bridge: Bridge) -> None:
    text = "WITH c AS (SELECT my_median(x) m FROM t) SELECT * FROM c WHERE m > (SELECT my_median(y) FROM u HAVING my_median(x) > 0)"
    plan = rewrite_plan(bridge, names.parse(bridge, text), collecting(NAMES))
    assert " 'my_median(" not in str(plan) and str(plan).count("_scalar_of_my_median") == 3


@pytest.mark.spark
def test_what_takes_the_place_of_a_call_has_its_place_in_the_text(bridge: Bridge) -> None:
    expression = bridge.expression("1 +\n  count(DISTINCT a)")
    rewritten = rewrite_expression(bridge, expression, stream_aggregates())
    assert bridge.origin(bridge.children(rewritten)[1]) == bridge.origin(bridge.children(expression)[1]) == (2, 3)


def test_mentions_are_found_whatever_the_case_and_spaces() -> None:
    assert mentions("SELECT My_Median (x), wavg, t.wavg(1)", NAMES) == ["my_median"]
