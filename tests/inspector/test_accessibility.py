"""The page has no violation that axe finds: light and dark, wide and narrow, with a panel, a failure and a dialog."""

from __future__ import annotations

from typing import Any

import pytest
from tests.inspector.pages import SOON, Attend, Open, epoch, node

from millstream.observe import events

TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def look(page: Any) -> Any:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    return axe.run(page, options={"runOnly": {"type": "tag", "values": TAGS}})


def require_no_violation(page: Any) -> None:
    found = look(page)
    assert found.violations_count == 0, found.generate_report()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing(attend: Attend, visit: Open, scheme: str, width: int) -> None:
    run, link = attend()
    page = visit(link, width=width, scheme=scheme)
    epoch(run, rejected={"big": 3})
    run.recorder.note("a note")
    run.recorder.warn("a warning")
    run.recorder.measure()
    page.wait_for_selector("#epochs figure", timeout=SOON)
    page.locator("#kept summary").click()
    page.locator("#spark-log summary").click()
    page.wait_for_selector("#kept table")
    require_no_violation(page)
    (node(page, "big") if width > 640 else page.locator("#list button").nth(1)).click()
    sampled = {"node": "big", "query": "orders", "epoch": 4, "read_again": True, "columns": {"id": "bigint"}}
    run.recorder.publish(events.RowsSampled(**sampled, rows=('{"id": 1, "value": null}',)))
    run.recorder.publish(events.Failed(code="MS067", message="a row failed", node="big"))
    page.wait_for_selector("#panel .failure", timeout=SOON)
    page.locator("#panel summary").first.click()
    page.wait_for_timeout(300)  # colours change slowly
    require_no_violation(page)


def test_axe_finds_nothing_in_a_dialog(attend: Attend, visit: Open) -> None:
    _, link = attend()
    page = visit(link)
    page.locator("#savepoint").click()
    require_no_violation(page)


def test_axe_would_find_something(attend: Attend, visit: Open) -> None:
    _, link = attend()
    page = visit(link)
    page.evaluate("document.getElementById('main').append(document.createElement('button'))")
    assert look(page).violations_count == 1
