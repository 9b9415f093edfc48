"""Which nodes cannot be watched, and why: the answer comes at once, and names what can."""

from __future__ import annotations

import os

import pytest
from tests.inspector.pages import Attend

from millstream.errors import RunError, UsageError
from millstream.inspector.samples import require_samples
from millstream.observe.watches import MOST
from millstream.plan.topology import Topology
from millstream.spec.loader import loads

TEXT = """
name: shop
sources:
  g:
    type: generator
    fields: {id: {type: sequence}, at: {type: timestamp}}
    event_time: {column: at, watermark: 1s}
  h: {type: generator, fields: {id: {type: sequence}, at: {type: timestamp}}}
transforms:
  plain: {type: filter, from: g, where: id > 3, on_error: {dead_letter: bad}}
  dice: {type: with_columns, from: plain, columns: {dice: rand()}}
  sums: {type: window, from: dice, window: {type: tumbling, size: 10s}, aggregate: {n: count(*)}}
  named: {type: with_columns, from: sums, columns: {label: "concat('n', n)"}}
  last: {type: filter, from: named, where: n > 1}
sinks:
  out: {type: blackhole, from: last}
  other: {type: blackhole, from: h}
  bad: {type: file, path: /data/bad, format: json}
"""


def plan(text: str) -> Topology:
    return loads(text, environ=os.environ).require()


@pytest.mark.parametrize("name", ["g", "plain", "last", "h"])
def test_most_nodes_can_be_watched(name: str) -> None:
    require_samples(plan(TEXT), name)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("dice", "`dice` returns other rows each time"),
        ("sums", "`sums` keeps state"),
        ("named", "`sums` keeps state"),
        ("bad", "/data/bad"),
    ],
)
def test_what_would_give_other_rows_is_refused(name: str, why: str) -> None:
    with pytest.raises(RunError, match=why) as refused:
        require_samples(plan(TEXT), name)
    assert refused.value.diagnostics[0].code == "MS189"
    assert "`last`" in refused.value.diagnostics[0].help


def test_real_time_mode_has_no_epochs_to_sample() -> None:
    text = """
name: fast
sources: {k: {type: kafka, topic: t, format: string, bootstrap_servers: "h:1"}}
sinks: {out: {type: kafka, from: k, topic: u, format: string, bootstrap_servers: "h:1", guarantee: at_least_once}}
settings: {trigger: {type: real_time}}
"""
    with pytest.raises(RunError, match="real-time mode"):
        require_samples(loads(text, environ=os.environ).require(), "k")


def test_there_are_not_too_many_filters(attend: Attend) -> None:
    run, _ = attend()
    for number in range(MOST):
        run.watch("big", f"value = '{number}'")
    with pytest.raises(RunError, match="20 readers or filters already"):
        run.watch("big", "value = 'one more'")


def test_a_name_that_does_not_run_leads_to_its_file(sockets: object, monkeypatch: pytest.MonkeyPatch) -> None:
    from millstream.cli.inspect import inspect

    with pytest.raises(UsageError, match="millstream inspect FILE"):
        inspect("nobody", "")
