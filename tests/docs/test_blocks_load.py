"""Every YAML block of every page loads, and every Python block compiles; commands exist."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.blocks import ROOT, blocks_of, pages
from tests.docs.loading import Page

from millstream.cli import COMMANDS

LANGUAGES = {"yaml", "python", "bash", "sql", "text", "json", ""}


@pytest.mark.parametrize("page", pages())
def test_the_blocks_of_a_page_are_right(page: str, folder: Path) -> None:
    said, found = Page(), []
    for block in blocks_of(page):
        assert block.language in LANGUAGES, f"{block.place}: what is `{block.language}`?"
        if block.language == "python":
            compile(block.text, block.place, "exec")
        if block.file:
            (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.file).write_text(block.text)
        if block.language == "yaml":
            found += said.errors(block)
        if block.language == "bash":
            lines = [line for line in block.text.splitlines() if line.startswith("millstream ")]
            found += [f"{block.place}: no command `{line}`" for line in lines if line.split()[1] not in {*COMMANDS, "--version"}]
    assert found == []


def test_blocks_are_found_with_their_places() -> None:
    blocks = [block for page in pages() for block in blocks_of(page)]
    first = next(block for block in blocks if block.page == "README.md" and block.whole)
    assert (first.file, (ROOT / first.page).read_text().splitlines()[first.line - 1]) == ("orders.yaml", "```yaml")
    assert {"yaml", "python", "bash"} <= {block.language for block in blocks}


def test_a_mistake_in_a_part_of_a_pipeline_is_found(folder: Path) -> None:
    from tests.docs.blocks import Block

    part = Block("p.md", 1, "yaml", "transforms:\n  w: {type: window, from: clicks, key_by: user, windwo: {type: tumbling, size: 1m}}\n")
    assert "MS006" in "".join(Page().errors(part))
