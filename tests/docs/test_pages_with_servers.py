"""Pages that name a server run from top to bottom on one that `millstream dev` would start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.docs.blocks import blocks_of, pages
from tests.docs.running import Player
from tests.servers.kafka import Cluster
from tests.servers.postgres import Database
from tests.warm import Done

pytestmark = pytest.mark.spark
Warm = Callable[..., Done]
ONCE = ("--set", "trigger.type=available_now")
"""Pipelines without an end read what is there."""


def servers(page: str) -> set[str]:
    return {block.value for block in blocks_of(page) if block.key == "server"}


@pytest.mark.parametrize("page", [page for page in pages() if "kafka" in servers(page)])
def test_a_page_with_kafka(page: str, kafka: Cluster, folder: Path, warm: Warm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("MILLSTREAM__CONNECTIONS__KAFKA__BOOTSTRAP_SERVERS", kafka.address)
    Player(folder, warm, ONCE).play(blocks_of(page))


@pytest.mark.parametrize("page", [page for page in pages() if "postgres" in servers(page)])
def test_a_page_with_postgres(page: str, postgres: Database, folder: Path, warm: Warm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("MILLSTREAM__CONNECTIONS__POSTGRES__PORT", str(postgres.server.port))
    postgres.clear_public()
    Player(folder, warm, ONCE, postgres.run).play(blocks_of(page))
