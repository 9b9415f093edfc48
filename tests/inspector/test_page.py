"""The page in a real browser, on a run without Spark: what it shows, how soon, and what it refuses."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from tests.inspector.pages import SOON, Attend, Open, epoch, node

from millstream.observe import events
from millstream.observe.facts import Restart


def test_the_first_paint_needs_less_than_100_kb(attend: Attend, browser: Any) -> None:
    _, link = attend()
    page, sizes = browser.new_page(), list[int]()
    page.on("requestfinished", lambda request: sizes.append(sum(request.sizes().values())))
    page.goto(link)
    page.wait_for_selector("#graph .node")
    page.close()
    assert 10_000 < sum(sizes) < 100_000


def test_the_topology_shows_the_nodes_and_the_token_leaves_the_address(attend: Attend, visit: Open) -> None:
    _, link = attend()
    page = visit(link)
    assert page.url == link.partition("#")[0]
    assert {each.get_attribute("data-node") for each in page.locator("#graph .node").all()} == {"orders", "big", "out"}
    assert page.locator("#graph path.edge").count() == 2
    lefts = [node(page, name).bounding_box()["x"] for name in ("orders", "big", "out")]
    assert lefts == sorted(lefts)
    assert page.title() == "shop: running"


def test_counts_change_soon_after_an_epoch(attend: Attend, visit: Open) -> None:
    run, link = attend()
    page = visit(link)
    node(page, "out").focus()
    page.keyboard.press("Enter")
    facts = page.locator("#panel dl").first
    assert re.search(r"rows in\s*not counted", facts.inner_text())
    epoch(run, rejected={"big": 3})
    page.wait_for_selector("#panel dl dd:text-is('70')", timeout=SOON)
    page.wait_for_selector("#graph [data-node=big] .counts:has-text('rejects 3')", timeout=SOON)
    page.wait_for_selector("#epochs >> text=before staging", timeout=SOON)
    assert re.search(r"rows out\s*not counted", facts.inner_text()), "what is not counted is not 0"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.dataset.node") == "out"


def test_a_failed_node_is_red_and_says_why(attend: Attend, visit: Open) -> None:
    run, link = attend()
    page = visit(link)
    before = node(page, "big").locator(".box").evaluate("box => getComputedStyle(box).stroke")
    run.recorder.publish(events.Failed(code="MS102", message="the condition is wrong", node="big", help="mend it"))
    page.wait_for_selector("#graph [data-node=big].has-bad .alert:has-text('failed: the condition is wr')", timeout=SOON)
    page.wait_for_selector("#failure >> text=mend it")
    page.wait_for_timeout(300)  # the colour changes slowly
    red = [int(part) for part in re.findall(r"\d+", node(page, "big").locator(".box").evaluate("box => getComputedStyle(box).stroke"))]
    assert red[0] > 2 * max(red[1:3]), (before, red)
    node(page, "big").click()
    assert "MS102" in page.locator("#panel .failure").inner_text()


def test_a_restarting_query_is_marked(attend: Attend, visit: Open) -> None:
    run, link = attend()
    page = visit(link)
    run.recorder.restart(Restart("orders", "the broker does not answer", 1, 5.0))
    page.wait_for_selector("#graph [data-node=orders].has-bad", timeout=SOON)
    page.wait_for_selector("#queries >> text=the broker does not answer")
    page.wait_for_selector("#health >> text=degraded")
    page.wait_for_selector("#log .level:has-text('restart')")


def test_html_is_text(attend: Attend, visit: Open) -> None:
    run, link = attend()
    page = visit(link)
    attack = "<img src=x onerror='window.broken = 1'>"
    run.recorder.warn(attack)
    run.recorder.publish(events.RowsSampled(node="big", query="orders", epoch=1, rows=(json.dumps({attack: attack}),), read_again=False))
    page.wait_for_selector("#log li:has-text('<img') .level:has-text('warning')", timeout=SOON)
    node(page, "big").click()
    assert page.locator("#panel .description").inner_text() == "<b>big</b> ones"
    page.wait_for_selector("#panel td:has-text('<img')")
    assert page.locator("img, #panel dd b, #log b, .description b").count() == 0
    assert page.evaluate("window.broken") is None


def test_rows_are_shown_as_they_are(attend: Attend, visit: Open) -> None:
    run, link = attend()
    page = visit(link)
    node(page, "big").click()
    page.wait_for_selector("#panel >> text=waiting: some rows")
    rows = ('{"id": 9007199254740993, "user": "ann"}', '{"id": 2, "user": null, "more": {"a": 1.0}}')
    run.recorder.publish(events.RowsSampled(node="big", query="orders", epoch=4, rows=rows, read_again=False))
    page.wait_for_selector("[aria-label='Sampled rows'] table", timeout=SOON)
    table = page.locator("[aria-label='Sampled rows'] table")
    assert table.locator("th").all_inner_texts() == ["epoch", "id", "user", "more"]
    assert table.locator("tbody tr").first.locator("td").all_inner_texts() == ["4", "9007199254740993", "ann", ""]
    page.locator("#panel").get_by_label("Search").fill("null")
    assert table.locator("tbody tr").count() == 1


def test_a_hundred_nodes_can_be_read(attend: Attend, visit: Open) -> None:
    middle = "\n".join(f"  f{n}: {{type: filter, from: {'g' if n < 7 else f'f{n // 2}'}, where: id > {n}}}" for n in range(68))
    last = "\n".join(f"  out{n}: {{type: blackhole, from: f{n + 36}}}" for n in range(31))
    fields = "{type: generator, fields: {id: {type: sequence}}}"
    _, link = attend(f"name: many\nsources:\n  g: {fields}\ntransforms:\n{middle}\nsinks:\n{last}\n")
    page = visit(link)
    boxes = [each.bounding_box() for each in page.locator("#graph .node .box").all()]
    assert len(boxes) == 100
    for index, one in enumerate(boxes):
        for other in boxes[:index]:
            beside = one["x"] + one["width"] <= other["x"] or other["x"] + other["width"] <= one["x"]
            assert beside or one["y"] + one["height"] <= other["y"] or other["y"] + other["height"] <= one["y"]
    page.get_by_label("Find").fill("out30")
    page.keyboard.press("Enter")
    assert page.locator("#panel h2").inner_text() == "out30"
    page.locator("#fit").click()
    graph = page.locator("#graph")
    assert graph.evaluate("each => each.scrollWidth <= each.clientWidth + 1 && each.scrollHeight <= each.clientHeight + 1")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_page_does_not_scroll_sideways(attend: Attend, visit: Open, scheme: str) -> None:
    run, link = attend()
    page = visit(link, width=390, scheme=scheme)
    run.recorder.note("a note with a long word: " + "x" * 300)
    epoch(run)
    page.wait_for_selector("#epochs figure")
    fits = "document.documentElement.scrollWidth <= innerWidth"
    assert page.evaluate(fits)
    page.locator("#list button").first.click()
    assert page.evaluate(fits)
    assert page.locator("#panel").bounding_box()["width"] == 390
    page.locator("#panel").get_by_label("Filter").fill("value >")
    page.keyboard.press("Enter")
    page.wait_for_selector("#panel >> text=MS027")
    assert page.evaluate(fits)


def test_orders_need_the_token(attend: Attend, visit: Open) -> None:
    run, link = attend()
    page = visit(link.partition("#")[0])
    for name in ("#pause", "#stop", "#savepoint"):
        page.locator(name).click()
        page.wait_for_selector("#order-message >> text=The link with the token is needed")
    assert not run.gate.is_paused
    page = visit(link)
    page.locator("#pause").click()
    page.wait_for_selector("#health >> text=paused", timeout=SOON)
    assert run.gate.is_paused
    page.locator("#pause:has-text('Resume')").click()
    page.wait_for_selector("#health >> text=running", timeout=SOON)
    page.locator("#savepoint").click()
    page.get_by_label("Folder").fill("s3://bucket/copy")
    page.get_by_role("button", name="Take it").click()
    page.wait_for_selector("#order-message >> text=MS185")
    page.locator("#stop").click()
    page.get_by_role("button", name="Cancel").click()
    assert not run.stopping.is_set()
    page.locator("#stop").click()
    page.get_by_role("button", name="Stop the run").click()
    page.wait_for_selector("#order-message >> text=The run stops")
    assert run.stopping.is_set()


def test_the_end_is_said(attend: Attend, visit: Open) -> None:
    run, link = attend()
    page = visit(link)
    epoch(run)
    run.recorder.state("done")
    page.wait_for_selector("#link-message >> text=the run has ended (done)", timeout=SOON)
    page.wait_for_selector("#health >> text=ended")
    assert page.locator("#stop").is_disabled()
