"""The web site fetches nothing from elsewhere, and lists every page."""

from __future__ import annotations

from pathlib import Path

import yaml
from tests.docs.blocks import ROOT, pages
from tools.site import fetched


def test_addresses_that_a_browser_would_fetch_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<script src="https://cdn.example/x.js"></script><a href="https://example.org">a link is fine</a>')
    (tmp_path / "b.css").write_text("@font-face{src:url(//fonts.example/y.woff2)} p{background:url(../z.png)}")
    assert fetched(tmp_path) == [("a.html", "https://cdn.example/x.js"), ("b.css", "//fonts.example/y.woff2")]


def test_every_page_is_in_the_navigation() -> None:
    text = (ROOT / "mkdocs.yml").read_text()
    nav = yaml.safe_load(text)["nav"]
    listed = set(_leaves(nav))
    assert {page for page in pages() if "/components/" not in page} <= listed
    assert all((ROOT / page).is_file() for page in listed)


def _leaves(node: object) -> list[str]:
    if isinstance(node, str):
        return [node]
    children = node.values() if isinstance(node, dict) else node
    return [leaf for child in children for leaf in _leaves(child)]  # type: ignore[attr-defined]  # lists and maps only
