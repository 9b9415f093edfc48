"""Queries are cut at roots; every sink belongs to one query, every reject is reported by one."""

from millstream.plan.cutting import cut
from millstream.plan.topology import Topology
from millstream.spec.loader import loads

FIELDS = "rows: 3, fields: {id: {type: sequence}}"


def plan(text: str) -> Topology:
    return loads(text).require()


def test_all_sinks_under_one_source_share_a_query() -> None:
    (query,) = cut(
        plan(f"""
sources: {{a: {{type: generator, {FIELDS}}}}}
transforms:
  b: {{type: filter, from: a, where: id > 1}}
  c: {{type: filter, from: a, where: id > 2}}
sinks: {{x: {{type: blackhole, from: b}}, y: {{type: blackhole, from: c}}, z: {{type: blackhole, from: a}}}}
""")
    )
    assert (query.name, [s.name for s in query.sinks], [n.name for n in query.below]) == ("a", ["x", "y", "z"], ["b", "c"])
    assert query.consumers("a") == 3


def test_a_union_is_a_root_and_a_source_can_feed_two_queries() -> None:
    queries = cut(
        plan(f"""
sources: {{a: {{type: generator, {FIELDS}}}, b: {{type: generator, {FIELDS}}}}}
transforms: {{u: {{type: union, from: [a, b]}}, f: {{type: filter, from: u, where: id > 1}}}}
sinks: {{x: {{type: blackhole, from: f}}, y: {{type: blackhole, from: a}}}}
""")
    )
    assert [(query.name, [sink.name for sink in query.sinks]) for query in queries] == [("a", ["y"]), ("u", ["x"])]


def test_the_bad_rows_of_a_shared_source_have_one_owner() -> None:
    queries = cut(
        plan(f"""
sources:
  a: {{type: file, path: a, format: json, schema: {{id: int64}}, on_error: {{dead_letter: bad}}}}
  b: {{type: generator, {FIELDS}}}
transforms: {{u: {{type: union, from: [a, b]}}}}
sinks: {{x: {{type: blackhole, from: u}}, y: {{type: blackhole, from: a}}, bad: {{type: blackhole}}}}
""")
    )
    assert [[sink.name for sink in query.sinks] for query in queries] == [["bad", "y"], ["x"]]
