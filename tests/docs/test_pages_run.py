"""Programs and commands of the pages run as printed, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.docs.blocks import blocks_of, pages
from tests.docs.running import Player
from tests.warm import Done

pytestmark = pytest.mark.spark


def played(page: str) -> bool:
    """Whether a page has something to run that needs no server."""
    return any(block.language in {"python", "bash"} and block.key != "server" for block in blocks_of(page))


@pytest.mark.parametrize("page", [page for page in pages() if played(page)])
def test_a_page_runs_from_top_to_bottom(page: str, folder: Path, warm: Callable[..., Done], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(folder)
    Player(folder, warm).play([block for block in blocks_of(page) if block.key != "server"])
