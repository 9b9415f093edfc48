"""The Python front door builds the plan that YAML would build."""

import pytest

from millstream import BlackholeSink, StreamEnvironment, TumblingWindow, col, func
from millstream.errors import SpecError
from millstream.rules import check
from millstream.spec.loader import loads

ROWS = [{"id": 1, "user": "ann", "amount": 2.5}]


def test_python_and_yaml_give_the_same_plan() -> None:
    env = StreamEnvironment("p")
    env.from_rows(ROWS, name="orders").filter(col("amount") > 1, name="big").select("id", u=func.upper(col("user")), name="slim").to(
        BlackholeSink(), "out"
    )
    yaml = """
name: p
sources: {orders: {type: memory, rows: [{id: 1, user: ann, amount: 2.5}]}}
transforms:
  big: {type: filter, from: orders, where: amount > 1}
  slim: {type: select, from: big, columns: {id: id, u: UPPER(user)}}
sinks: {out: {type: blackhole, from: slim}}
"""
    assert loads(yaml).require() == env.topology()


def test_names_are_made_in_the_same_way_every_time() -> None:
    def build() -> list[str]:
        env = StreamEnvironment("p")
        env.from_rows(ROWS).filter("id > 1").filter("id > 2").to(BlackholeSink())
        return [node.name for node in env.topology().nodes]

    assert build() == build() == ["rows", "filter", "filter_2", "blackhole"]


def test_a_name_twice_is_refused_with_both_places() -> None:
    env = StreamEnvironment("p")
    stream = env.from_rows(ROWS).filter("id > 1", name="x")
    with pytest.raises(SpecError, match="taken") as refused:
        stream.filter("id > 2", name="x")
    assert "test_streams.py" in refused.value.diagnostics[0].detail


def test_a_split_is_a_route() -> None:
    env = StreamEnvironment("p")
    routes = env.from_rows(ROWS, name="o").split(big=col("amount") > 1, ann=col("user") == "ann", name="by")
    assert {name: stream.name for name, stream in routes.items()} == {"big": "by.big", "ann": "by.ann", "default": "by.default"}
    for stream in routes.values():
        stream.to(BlackholeSink())
    document = env.topology().to_yaml()
    assert "routes:\n      big: amount > 1\n      ann: user = 'ann'" in document


def test_a_branch_of_a_split_cannot_be_called_default() -> None:
    env = StreamEnvironment("p")
    env.from_rows(ROWS, name="o").split(default=col("amount") > 1)["default"].to(BlackholeSink())
    assert [finding.code for finding in check(env.topology()) if finding.level == "error"] == ["MS017"]


def test_a_stream_can_be_used_twice() -> None:
    env = StreamEnvironment("p")
    stream = env.from_rows(ROWS)
    stream.filter("id > 1").to(BlackholeSink())
    stream.to(BlackholeSink())
    assert len(env.topology().consumers("rows")) == 2


def test_nodes_know_the_line_that_made_them() -> None:
    env = StreamEnvironment("p")
    env.from_rows(ROWS).filter("nope > 1", name="wrong").to(BlackholeSink())
    span = env.topology().node("wrong").span
    assert span
    assert span.text.strip().startswith('env.from_rows(ROWS).filter("nope > 1"')


def test_a_window_without_an_event_time_names_the_node_that_needs_one() -> None:
    env = StreamEnvironment("p")
    env.from_rows(ROWS).key_by("user").window(TumblingWindow.of("5m")).aggregate(n=func.count(1)).to(BlackholeSink())
    with pytest.raises(SpecError, match=r"MS037.*`rows` have none"):
        env.execute()


def test_a_wrong_plan_is_refused_before_anything_starts() -> None:
    env = StreamEnvironment("p")
    with pytest.raises(SpecError, match="MS024"):
        env.from_rows(ROWS).filter("nope > 1").to(BlackholeSink()).execute()
