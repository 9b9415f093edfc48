"""Mistakes in windows, keys, joins and event times: one clear error with its place, found by `check`."""

from collections.abc import Callable
from typing import Any

import pytest

from millstream.errors import RunError, SpecError

SOURCE = (
    "{type: memory, rows: [], schema: {user: string, amount: int64, price: float64, at: timestamp},"
    " event_time: {column: at, watermark: 10s}}"
)
WINDOW = "{type: window, from: clicks, key_by: [user], window: {type: tumbling, size: 1m}, aggregate: {n: count(*)}}"
EARLY = "type: session, gap: 1m}, aggregate: {n: count(*)}, emit: updates}"
MISTAKES = [
    ("size: 1m", "size: 0s", "MS008", "a window must be longer than zero"),
    ("size: 1m", "size: -5m", "MS009", "is not a duration"),
    ("type: tumbling, size: 1m", "type: sliding, size: 1m, slide: 2m", "MS008", "`slide` must be longer than zero and not longer"),
    ("type: tumbling, size: 1m", "type: session, gap: 0s", "MS008", "the gap must be longer than zero"),
    ("size: 1m", "size: 1m, offset: 2m", "MS008", "`offset` must be shorter"),
    ("size: 1m", "size: 1d, time_zone: Europe/Berlim", "MS008", "there is no time zone `Europe/Berlim`"),
    ("size: 1m", "size: 1h, time_zone: Europe/Berlin", "MS008", "windows are whole days"),
    ("key_by: [user]", "key_by: [usr]", "MS024", "unknown column `usr`"),
    ("key_by: [user]", "key_by: [price]", "MS038", "`price` is float64 and cannot be a key"),
    ("n: count(*)", "n: sum(user)", "MS029", "the column is string, and not a number"),
    ("n: count(*)", "n: amount + 1", "MS029", "is not an aggregate"),
    ("n: count(*)", "n: sum(amout)", "MS024", "unknown column `amout`"),
    ("n: count(*)", "user: count(*)", "MS020", "two columns would be called `user`"),
    ("}}", "}, late: {dead_letter: nowhere}}", "MS031", "sends late rows to `nowhere`, which is not a sink"),
    ("type: tumbling, size: 1m}, aggregate: {n: count(*)}}", EARLY, "MS036", "a session has no early results"),
]  # fmt: skip


def load(pipeline: Callable[..., Any], node: str, source: str = SOURCE) -> Any:
    return pipeline(f"sources:\n  clicks: {source}\ntransforms:\n  counted: {node}\nsinks:\n  out: {{type: blackhole, from: counted}}\n")


def test_the_pipeline_without_mistakes_loads(pipeline: Callable[..., Any]) -> None:
    load(pipeline, WINDOW)


@pytest.mark.parametrize(("right", "wrong", "code", "sentence"), MISTAKES)
def test_one_mistake_gives_one_error_at_its_line(pipeline: Callable[..., Any], right: str, wrong: str, code: str, sentence: str) -> None:
    node = WINDOW[: WINDOW.rindex(right)] + wrong + WINDOW[WINDOW.rindex(right) + len(right) :]
    with pytest.raises(SpecError) as caught:
        load(pipeline, node)
    (found,) = caught.value.diagnostics
    assert found.code == code and sentence in found.message, found.message
    assert found.span is not None and found.span.line == 4


def test_a_missing_event_time_is_named_where_it_belongs(pipeline: Callable[..., Any]) -> None:
    with pytest.raises(SpecError, match="MS037") as caught:
        load(pipeline, WINDOW, SOURCE.replace(", event_time: {column: at, watermark: 10s}", ""))
    assert "to `clicks`" in caught.value.diagnostics[0].help


JOIN = "{type: join, left: clicks, right: other, on: left.user = right.user, within: {after: 1h}}"
JOINS = [
    (", within: {after: 1h}", "", "MS039", "MB per million rows"),
    ("left.user = right.user", "left.user = right.amount", "MS035", "they are never equal"),
    ("left.user = right.user", "user = right.user", "MS024", "has no side"),
    ("left.user = right.user", "left.usr = right.user", "MS024", "unknown column `usr` on the left side"),
    ("left.user = right.user", "left.amount > right.amount", "MS027", "a join needs an equality"),
    ("right: other", "right: othr", "MS012", "unknown input `othr`"),
]


@pytest.mark.parametrize(("right", "wrong", "code", "sentence"), JOINS)
def test_joins_say_what_is_wrong(pipeline: Callable[..., Any], right: str, wrong: str, code: str, sentence: str) -> None:
    text = f"sources:\n  clicks: {SOURCE}\n  other: {SOURCE}\ntransforms:\n  both: {JOIN.replace(right, wrong)}\n"
    with pytest.raises(SpecError) as caught:
        pipeline(text + "sinks:\n  out: {type: blackhole, from: both}\n  seen: {type: blackhole, from: other}\n")
    found = caught.value.diagnostics[0]
    assert found.code == code and sentence in found.message, found.message


def test_state_over_a_changelog_is_not_supported_yet(pipeline: Callable[..., Any]) -> None:
    with pytest.raises(SpecError, match=r"MS030.*keeps state over the changelog `totals`"):
        pipeline(f"""
            sources: {{clicks: {SOURCE}}}
            transforms:
              totals: {{type: aggregate, from: clicks, key_by: [user], aggregate: {{n: count(*)}}}}
              again: {{type: window, from: totals, key_by: [n], window: {{type: tumbling, size: 1h}}, aggregate: {{c: count(*)}}}}
            sinks: {{out: {{type: blackhole, from: again}}}}
        """)


@pytest.mark.spark
def test_a_null_key_is_a_bad_row(pipeline: Callable[..., Any], run: Callable[..., Any]) -> None:
    rows = '[{user: a, amount: 1, at: "2024-01-01T00:00:00Z"}, {user: null, amount: 2, at: "2024-01-01T00:00:00Z"}]'
    source = SOURCE.replace("rows: []", f"rows: {rows}").replace(", price: float64", "")
    with pytest.raises(RunError, match=r"MS073.*`counted`: the key `user` is null"):
        run(load(pipeline, WINDOW, source))
    dropping = load(pipeline, WINDOW[:-1] + ", on_error: drop}", source)
    assert run(dropping, reset=("counted",)).nodes["counted"].rejected == 1
