"""Every mistake in a file is found at its line and column, and all of them at once."""

import textwrap

import pytest

from millstream.spec.loader import Loaded, loads

GOOD = """
sources:
  orders: {type: generator, rows: 3, fields: {id: {type: sequence}}}
sinks:
  out: {type: blackhole, from: orders}
"""


def load(text: str, **environ: str) -> Loaded:
    return loads(textwrap.dedent(text), environ=environ, file="orders.yaml")


def found(text: str, **environ: str) -> list[tuple[str, int, int]]:
    errors = load(text, **environ).errors
    return [(error.code, error.span.line if error.span else 0, error.span.column if error.span else 0) for error in errors]


def test_a_right_file_has_no_findings() -> None:
    loaded = load(GOOD)
    assert loaded.diagnostics == ()
    assert loaded.require().name == "orders"


def test_transforms_may_be_missing_or_empty() -> None:
    assert load(GOOD + "transforms: {}\n").errors == ()


def test_a_misspelt_field_is_one_error_with_the_nearest_name() -> None:
    loaded = load(GOOD.replace("rows: 3", "row: 3"))
    (error,) = loaded.errors
    assert (error.code, error.span.line, error.span.column) == ("MS006", 3, 29)
    assert error.help == "did you mean `rows`?"
    assert "^^^" in error.render()


def test_a_misspelt_required_field_is_not_reported_as_missing_too() -> None:
    codes = [error.code for error in load(GOOD.replace("fields:", "feilds:")).errors]
    assert codes == ["MS006"]


def test_all_errors_come_at_once() -> None:
    text = """
    sources:
      a: {type: generator, rows: many, fields: {id: {type: sequence}}}
      b: {type: nosuch}
    sinks:
      out: {type: print, from: a, sample_evry: 3}
    settings: {trigger: {type: interval, every: 5 parsecs}}
    """
    assert [code for code, _, _ in found(text)] == ["MS008", "MS010", "MS006", "MS009"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param("", "MS005", id="empty"),
        pytest.param("- a\n- b\n", "MS005", id="a list"),
        pytest.param("sources:\n\ta: 1\n", "MS002", id="tab"),
        pytest.param("sources: [", "MS002", id="never closed"),
        pytest.param("sources: {a: {type: generator}, a: {type: file}}\nsinks: {}", "MS003", id="duplicate key"),
        pytest.param("sources: 3\nsinks: {}", "MS008", id="section of a wrong type"),
        pytest.param("sources: {a: 3}\nsinks: {}", "MS008", id="node of a wrong type"),
        pytest.param("sources: {a: {rows: 3}}\nsinks: {}", "MS007", id="no type"),
        pytest.param(GOOD + "nonsense: 1\n", "MS006", id="unknown section"),
    ],
)
def test_a_broken_file_has_its_own_code(text: str, code: str) -> None:
    assert code in [error.code for error in load(text).errors]


def test_a_tab_is_pointed_at() -> None:
    (error,) = load("sources:\n\ta: 1\n").errors
    assert (error.span.line, error.span.column) == (2, 1)
    assert "spaces" in error.help


def test_a_file_of_ten_megabytes_is_refused_quickly() -> None:
    (error,) = load("a: " + "x" * 10_000_000).errors
    assert error.code == "MS004"


def test_anchors_that_explode_are_refused() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    (error,) = load("\n".join(levels)).errors
    assert error.code == "MS004"


def test_an_anchor_in_bounds_works() -> None:
    text = GOOD.replace("rows: 3", "rows: 3, <<: *c").replace("sources:", "x-c: &c {seed: 5}\nsources:")
    assert load(text).require().node("orders").component.seed == 5


def test_yes_on_and_clock_times_are_text() -> None:
    text = GOOD.replace("orders:", "on:").replace("from: orders", "from: on")
    assert load(text).require().node("on")


def test_an_unknown_column_in_a_block_of_sql_is_found_in_its_own_line() -> None:
    text = """
    sources:
      raw.orders: {type: generator, rows: 3, fields: {id: {type: sequence}, amount: {type: uniform, min: 1, max: 2}}}
    transforms:
      large:
        type: sql
        sql: |
          SELECT id
          FROM raw.orders
          WHERE amout > 1
    sinks:
      out: {type: blackhole, from: large}
    """
    (error,) = load(text).errors
    assert (error.code, error.span.line, error.span.column) == ("MS024", 10, 13)
    assert error.help == "did you mean `amount`?"


def test_a_column_in_sql_on_one_line_is_found_too() -> None:
    text = GOOD + "transforms:\n  t: {type: sql, sql: SELECT idd FROM orders}\n"
    text = text.replace("from: orders", "from: t")
    (error,) = load(text).errors
    assert (error.span.line, error.span.column, error.span.end) == (7, 30, 33)
