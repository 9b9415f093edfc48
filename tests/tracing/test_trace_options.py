"""What can be traced is checked before a run."""

from __future__ import annotations

import pytest

from millstream import BlackholeSink, GeneratorSource, Sampling, StreamEnvironment
from millstream.spec.loader import loads

TEXT = """
sources:
  orders: {type: generator, rows: 1, fields: {id: {type: sequence}}SOURCE}
transforms:
  big: {type: filter, from: orders, where: id > 1TRANSFORM}
sinks: {out: {type: blackhole, from: big}}
"""


def findings(source: str = "", transform: str = "") -> list[tuple[str, str, str]]:
    loaded = loads(TEXT.replace("SOURCE", source).replace("TRANSFORM", transform))
    return [(each.code, each.message, each.help or "") for each in loaded.diagnostics]


def trace(text: str) -> str:
    return f", telemetry: {{trace: {text}}}"


@pytest.mark.parametrize(
    "option", ["always", "{ratio: 0.01}", "{where: id > 3}", "{where: id > 3, ratio: 0.5, payload: 100}", "{ratio: 0}"]
)
def test_a_source_can_be_traced(option: str) -> None:
    assert findings(trace(option)) == []


def test_a_transform_cannot_be() -> None:
    ((code, message, help_),) = findings(transform=trace("always"))
    assert (code, message) == ("MS006", "transform `big` takes no `telemetry.trace`")
    assert "set it on the source" in help_


def test_a_condition_is_about_columns_of_the_source() -> None:
    ((code, message, help_),) = findings(trace("{where: idd > 3}"))
    assert code == "MS024" and "`idd`" in message and "`id`" in help_


@pytest.mark.parametrize("option", ["{}", "{payload: 3}", "{ratio: 2}", "sometimes", "{where: 'id >'}", "{ratio: 0.1, payload: 9999}"])
def test_an_option_that_makes_no_sense_is_refused(option: str) -> None:
    assert findings(trace(option))


@pytest.mark.parametrize("where", ["rand() < 0.1", "uuid() > 'a'", "now() > timestamp '2020-01-01'"])
def test_a_condition_that_may_decide_otherwise_is_refused(where: str) -> None:
    ((code, message, help_),) = findings(trace(f'{{where: "{where}"}}'))
    assert code == "MS008" and "when an epoch is repeated" in message and "ratio" in help_


def test_the_name_of_the_column_is_reserved() -> None:
    text = "sources: {a: {type: file, path: in, format: json, schema: {_traceparent: string}}}\nsinks: {out: {type: blackhole, from: a}}"
    assert ["reserved for traces" in each.message for each in loads(text).diagnostics] == [True]


def test_a_word_that_is_not_known_leads_to_both_forms() -> None:
    assert findings(trace("0.01"))[0][2] == "known: `always`, or a map with `ratio`, `where`, `payload`"


def test_python_says_it_where_the_source_is_used() -> None:
    env = StreamEnvironment("shop")
    env.from_source(GeneratorSource(rows=1, fields={"id": {"type": "sequence"}}), "orders", trace=Sampling(ratio=0.5)).to(BlackholeSink())
    assert env.topology().node("orders").options.telemetry.trace == Sampling(ratio=0.5)
