"""Pipelines that the guides print whole pass the check as printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from millstream.spec.loader import loads

DOCS = Path(__file__).parents[1] / "docs"
BLOCKS = [
    (page.name, block)
    for page in sorted(DOCS.glob("*.md"))
    for block in re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    if re.search(r"^sources:", block, re.MULTILINE) and re.search(r"^sinks:", block, re.MULTILINE)
]


@pytest.mark.parametrize(("page", "block"), BLOCKS, ids=[f"{page}-{index}" for index, (page, _) in enumerate(BLOCKS)])
def test_a_whole_pipeline_passes_the_check(page: str, block: str) -> None:
    assert [finding.render() for finding in loads(block, file=page).errors] == []


def test_there_are_such_pipelines() -> None:
    assert {"guide.md", "kafka.md", "postgres.md"} <= {page for page, _ in BLOCKS}
