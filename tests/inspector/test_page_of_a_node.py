"""What the page shows of a node and of the run beside counts: rows that are filtered or read again, columns, dead letters, explanations,
the checkpoint, Spark's log, and back-pressure.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.inspector.conftest import CANARY, TEXT
from tests.inspector.pages import SOON, Attend, Open, epoch, node

from millstream.observe import events
from millstream.observe.watches import Watched

LETTERS = """
name: shop
sources:
  orders: {type: kafka, topic: orders, format: string, bootstrap_servers: "h:1"}
transforms:
  numbers: {type: select, from: orders, columns: {id: CAST(value AS INT)}, on_error: {dead_letter: bad}}
sinks:
  out: {type: blackhole, from: numbers}
  bad: {type: file, path: /data/bad, format: json}
"""
Run = Any


def sample(run: Run, *rows: str, **facts: Any) -> None:
    common = {
        "node": "big",
        "query": "orders",
        "epoch": 4,
        "rows": rows,
        "read_again": False,
        "columns": {"id": "bigint", "value": "string"},
    }
    run.recorder.publish(events.RowsSampled(**{**common, **facts}))


def test_a_filter_is_applied_before_rows_are_taken(attend: Attend, visit: Open) -> None:
    run, link = attend()
    page = visit(link)
    node(page, "big").click()
    sample(run, '{"id": 1, "value": "a"}')
    page.wait_for_selector("[aria-label='Sampled rows'] td:text-is('a')", timeout=SOON)
    box = page.locator("#panel").get_by_label("Filter")
    box.fill("value = 'rare'")
    page.keyboard.press("Enter")
    page.wait_for_selector("#panel >> text=waiting: some rows")
    run.recorder.watches.offer("orders", {"big"}, {"orders"})
    assert Watched("big", "value = 'rare'") in run.recorder.watches.due("orders")
    sample(run, where="value = 'rare'", epoch=5)
    page.wait_for_selector("#panel >> text=no row of epoch 5 passes the filter", timeout=SOON)
    sample(run, '{"id": 2, "value": "rare"}', where="value = 'rare'", epoch=6)
    page.wait_for_selector("[aria-label='Sampled rows'] td:text-is('rare')", timeout=SOON)
    assert page.locator("[aria-label='Sampled rows'] tbody tr").count() == 1


def test_rows_can_be_paused_and_copied(attend: Attend, visit: Open) -> None:
    run, link = attend()
    page = visit(link)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    node(page, "big").click()
    sample(run, '{"id": 1, "value": "a"}')
    table = page.locator("[aria-label='Sampled rows'] tbody tr")
    page.wait_for_selector("[aria-label='Sampled rows'] table", timeout=SOON)
    page.locator("#panel").get_by_role("button", name="Hold rows").click()
    sample(run, '{"id": 2, "value": "b"}', epoch=5)
    page.wait_for_timeout(800)
    assert table.count() == 1
    page.locator("#panel").get_by_role("button", name="Copy as JSON").click()
    page.wait_for_selector("#panel >> text=1 row copied")
    assert json.loads(page.evaluate("navigator.clipboard.readText()")) == [{"id": 1, "value": "a"}]
    page.locator("#panel").get_by_role("button", name="Go on").click()
    assert table.count() == 2


def test_a_mistake_in_the_filter_is_marked(attend: Attend, visit: Open) -> None:
    run, link = attend()
    page = visit(link)
    node(page, "big").click()
    box = page.locator("#panel").get_by_label("Filter")
    box.fill("vlaue = 'x'")
    page.keyboard.press("Enter")
    page.wait_for_selector("#panel >> text=did you mean `value`?")
    assert "vlaue = 'x'\n^^^^^" in page.locator("#panel .message-text").text_content()
    box.fill("value = 'x'")
    page.keyboard.press("Enter")
    page.wait_for_selector("#panel >> text=waiting: some rows")
    failed = {
        "node": "big",
        "query": "orders",
        "epoch": 7,
        "where": "value = 'x'",
        "code": "MS067",
        "message": "the filter failed on a row",
    }
    run.recorder.publish(events.RowsRefused(**failed))
    page.wait_for_selector("#panel >> text=MS067: the filter failed on a row", timeout=SOON)


def test_rows_that_were_read_again_are_labelled(attend: Attend, visit: Open) -> None:
    run, link = attend()
    page = visit(link)
    node(page, "orders").click()
    assert page.locator("#panel .again").is_hidden()
    sample(run, '{"value": "a"}', node="orders", read_again=True)
    page.wait_for_selector("#panel .again >> text=Read again", timeout=SOON)


def test_columns_have_types_before_and_after_a_sample(attend: Attend, visit: Open) -> None:
    run, link = attend()
    page = visit(link)
    node(page, "big").click()
    columns = page.locator("[aria-label='Columns']")
    assert ["value", "string"] in [row.locator("td").all_inner_texts() for row in columns.locator("tbody tr").all()]
    sample(run, '{"id": 1, "value": "a"}')
    page.wait_for_selector("[aria-label='Columns'] td:text-is('bigint')", timeout=SOON)


def test_dead_letters_are_counted_where_they_are(attend: Attend, visit: Open) -> None:
    run, link = attend(LETTERS)
    page = visit(link)
    epoch(run, rejected={"numbers": 3})
    page.wait_for_selector("#graph [data-node=numbers] .counts:has-text('rejects 3')", timeout=SOON)
    node(page, "numbers").click()
    page.wait_for_selector("#panel >> text=3 rejects in this run, written to")
    page.wait_for_selector("#panel p:text-is('/data/bad')")
    page.locator("#panel").get_by_role("button", name="bad").last.click()
    page.wait_for_selector("#panel >> text=3 rejects in this run, of")


def test_an_error_can_be_explained(attend: Attend, visit: Open) -> None:
    run, link = attend()
    page = visit(link)
    run.recorder.publish(events.Failed(code="MS067", message="a row failed", node="big"))
    node(page, "big").click()
    page.locator("#panel summary:has-text('Explain MS067')").click()
    page.wait_for_selector("#panel details >> text=What to do:")


def test_the_checkpoint_and_the_log_are_shown_when_asked_for(attend: Attend, visit: Open, tmp_path: Path) -> None:
    run, link = attend(f"{TEXT}settings: {{checkpoint: {tmp_path}}}\n")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "jvm.log").write_text(f"WARN first\nWARN the password is {CANARY}\n")
    page = visit(link)
    page.locator("#kept summary").click()
    page.wait_for_selector("#kept >> text=last committed epoch")
    assert run.checkpoint.storage.url in page.locator("#kept").inner_text()
    assert page.locator("#kept [aria-label='Queries'] tbody td").all_inner_texts() == ["orders", "none", "none", "–"]
    page.locator("#spark-log summary").click()
    page.wait_for_selector("#spark-log pre >> text=WARN first")
    assert CANARY not in page.locator("#spark-log").inner_text()


def test_the_log_needs_the_token(attend: Attend, visit: Open) -> None:
    _, link = attend()
    page = visit(link.partition("#")[0])
    page.locator("#spark-log summary").click()
    page.wait_for_selector("#spark-log >> text=The link with the token is needed")


def test_back_pressure_is_at_the_slow_sink(attend: Attend, visit: Open) -> None:
    run, link = attend()
    page = visit(link)
    publish: Callable[..., None] = run.recorder.publish
    now = time.time()
    for number in range(8):
        at, query = now - 8 + number, "orders"
        publish(events.EpochPlanned(at=at, query=query, epoch=number, planned_at=at))
        publish(events.EpochStaged(at=at + 0.9, query=query, epoch=number, sink="out", seconds=0.8))
        publish(events.EpochCommitted(at=at + 0.95, query=query, epoch=number, sinks=("out",), seconds=0.05))
        publish(events.EpochFinished(at=at + 1, query=query, epoch=number, seconds=0.99, rows_out={"out": 5}))
    assert page.locator("#graph .edge.pressed").count() == 0, "rows do not wait yet"
    for number in range(9):
        run.recorder.set("orders", "source", waiting=100 * (number + 1))
        time.sleep(0.3)
    page.wait_for_selector("#graph [data-node=out].has-caution .alert:has-text('back-pressure: 8')", timeout=SOON)
    assert page.locator("#graph .edge.pressed").count() == 1
