"""Calls of aggregate functions become calls over collected lists; everything else in the text stays as it was written."""

import pytest

from millstream.sql.rewrites.calls import collected, mentions

NAMES = ["my_median", "wavg"]
MEDIAN = "_scalar_of_my_median(collect_list({}))"
WAVG = "_scalar_of_wavg(collect_list(named_struct('_millstream_1', x, '_millstream_2', y)))"


@pytest.mark.parametrize(
    ("written", "becomes"),
    [
        ("my_median(x)", "_scalar_of_my_median(collect_list(x))"),
        ("MY_Median( x )", "_scalar_of_my_median(collect_list( x ))"),
        ("`my_median`(x)", "_scalar_of_my_median(collect_list(x))"),
        ("my_median(DISTINCT x)", "_scalar_of_my_median(collect_list(DISTINCT x))"),
        ("my_median(x) FILTER (WHERE (x > 0))", "_scalar_of_my_median(collect_list(x) FILTER (WHERE (x > 0)))"),
        ("my_median(x) OVER (PARTITION BY k)", "_scalar_of_my_median(collect_list(x) OVER (PARTITION BY k))"),
        ("my_median(x) OVER w", "_scalar_of_my_median(collect_list(x) OVER w)"),
        ("my_median(x) FILTER (WHERE a) OVER w", "_scalar_of_my_median(collect_list(x) FILTER (WHERE a) OVER w)"),
        ("round(my_median(abs(x)), 1)", "round(_scalar_of_my_median(collect_list(abs(x))), 1)"),
        ("wavg(x, y)", WAVG),
        (
            "wavg(DISTINCT a[f(1, 2)], y)",
            "_scalar_of_wavg(collect_list(DISTINCT named_struct('_millstream_1',  a[f(1, 2)], '_millstream_2', y)))",
        ),
        (
            "wavg(my_median(x),my_median(y))",
            f"_scalar_of_wavg(collect_list(named_struct('_millstream_1', {MEDIAN.format('x')}, '_millstream_2',{MEDIAN.format('y')})))",
        ),
        (
            "my_median(x) FILTER (WHERE wavg(x, y) > 1)",
            f"_scalar_of_my_median(collect_list(x) FILTER (WHERE {WAVG} > 1))",
        ),
    ],
)
def test_a_call_collects_its_arguments(written: str, becomes: str) -> None:
    text = "SELECT k,\n  {} AS m -- my_median(x)\nFROM t GROUP BY k"
    assert collected(text.format(written), NAMES) == text.format(becomes)


@pytest.mark.parametrize(
    "text", ["'my_median(x)'", "my_median", "t.my_median(x)", "my_median()", "other_my_median(x)", "my_median x", '"my_median(x)"']
)
def test_what_is_no_call_stays(text: str) -> None:
    assert collected(f"SELECT {text} FROM t", NAMES) == f"SELECT {text} FROM t"


@pytest.mark.parametrize(
    ("written", "becomes"),
    [
        ("SELECT k, my_median(x) FROM t", f"SELECT k, {MEDIAN.format('x')} AS `my_median(x)` FROM t"),
        ("SELECT DISTINCT My_median( `x` ), k", f"SELECT DISTINCT {MEDIAN.format(' `x` ')} AS `My_median( ``x`` )`, k"),
        ("(SELECT f(1), my_median(x))", f"(SELECT f(1), {MEDIAN.format('x')} AS `my_median(x)`)"),
        ("SELECT my_median(x) m FROM t", f"SELECT {MEDIAN.format('x')} m FROM t"),
        ("SELECT my_median(x) + 1 FROM t", f"SELECT {MEDIAN.format('x')} + 1 FROM t"),
        ("SELECT array(1, my_median(x), 2) FROM t", f"SELECT array(1, {MEDIAN.format('x')}, 2) FROM t"),
        ("SELECT k FROM t ORDER BY k, my_median(x)", f"SELECT k FROM t ORDER BY k, {MEDIAN.format('x')}"),
    ],
)
def test_a_column_without_a_name_is_called_as_it_was_written(written: str, becomes: str) -> None:
    assert collected(written, NAMES) == becomes


def test_text_that_cannot_be_read_is_left_to_spark() -> None:
    assert collected("SELECT my_median('x", NAMES) == "SELECT my_median('x"


def test_mentions_are_found_whatever_the_case_and_spaces() -> None:
    assert mentions("SELECT My_Median (x), wavg, t.wavg(1)", NAMES) == ["my_median"]
