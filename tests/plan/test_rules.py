"""Each rule finds its mistake, says where, and stays silent otherwise."""

import pytest

from millstream.spec.loader import loads

BASE = """
sources:
  orders: {type: generator, rows: 3, fields: {id: {type: sequence}, user: {type: choice, values: [a, b]}}}
transforms:
  some: {type: filter, from: orders, where: id > 1}
sinks:
  out: {type: blackhole, from: some}
"""


def codes(old: str = "", new: str = "") -> list[str]:
    assert old in BASE
    return [finding.code for finding in loads(BASE.replace(old, new) if old else BASE + new).diagnostics]


@pytest.mark.parametrize("above", ["nobody", "some"])
def test_a_group_of_sinks_over_a_broken_path_is_not_looked_at(above: str) -> None:
    """Nor waited for: a cycle has no root."""
    grouped = "{type: postgres, database: d, table: t, commit_group: g, from: some}"
    text = BASE.replace("{type: blackhole, from: some}", grouped).replace("from: orders", f"from: {above}")
    assert not {"MS109", "MS099"} & {finding.code for finding in loads(text).diagnostics}


def test_the_base_is_right() -> None:
    assert codes() == []


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        pytest.param("from: orders", "from: ordrs", "MS012", id="unknown input"),
        pytest.param("from: some}", "from: out}", "MS012", id="a sink as input"),
        pytest.param("from: orders", "from: some", "MS021", id="a cycle of one"),
        pytest.param("  some:", "  orders:", "MS020", id="duplicate name"),
        pytest.param("  some:", "  _some:", "MS017", id="a reserved name"),
        pytest.param("from: some}", "from: orders}", "MS022", id="an orphan"),
        pytest.param("sinks:\n  out: {type: blackhole, from: some}\n", "sinks: {}\n", "MS023", id="no sink"),
        pytest.param("where: id > 1", "where: idd > 1", "MS024", id="unknown column"),
        pytest.param("where: id > 1", "where: id >", "MS027", id="an expression that does not parse"),
        pytest.param("where: id > 1", "where: id > 1, primary_key: nope", "MS025", id="key not in the schema"),
        pytest.param("from: some}", "from: some, primary_key: nope}", "MS025", id="key of a sink not in the schema"),
        pytest.param("where: id > 1", "where: id > 1, on_error: {dead_letter: nowhere}", "MS031", id="no dead-letter sink"),
        pytest.param("{type: blackhole, from: some}", "{type: blackhole}", "MS033", id="a sink without input"),
        pytest.param("from: orders", "from: [orders, orders2]", "MS033", id="two inputs where one is taken"),
        pytest.param(
            "{type: blackhole, from: some}", "{type: file, from: some, path: x, format: csv, partition_by: [nope]}", "MS024", id="partition"
        ),
    ],
)
def test_a_mistake_has_its_code(old: str, new: str, code: str) -> None:
    assert code in codes(old, new)


def test_a_cycle_is_shown_as_a_path() -> None:
    text = BASE.replace("from: orders", "from: b") + "  more: {type: blackhole, from: b}\n"
    text = text.replace("sinks:", "  b: {type: filter, from: some, where: id > 2}\nsinks:")
    (error,) = [finding for finding in loads(text).errors if finding.code == "MS021"]
    assert "`some`" in error.message
    assert "`b`" in error.message


def test_behind_an_unknown_type_nothing_else_is_claimed() -> None:
    assert codes("type: generator, rows: 3", "type: kafkaa, rows: 3") == ["MS010"]


def test_a_dead_letter_sink_needs_no_input() -> None:
    text = BASE.replace("where: id > 1", "where: id > 1, on_error: {dead_letter: bad}") + "  bad: {type: blackhole}\n"
    assert loads(text).diagnostics == ()
