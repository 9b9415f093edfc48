"""A topic that was just made is waited for: the broker that answers the next question may not know it yet."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from millstream.clients.kafka import Topic
from millstream.clients.storage import LocalStorage
from millstream.connectors.kafka.write import target
from millstream.errors import Diagnostic, RunError
from millstream.plan.components import NodeContext


class Slow:
    """An admin client whose cluster hears of the topic at the third question."""

    def __init__(self, code: str) -> None:
        self.asked, self.code = 0, code

    def names(self) -> list[str]:
        return []

    def cluster(self) -> str:
        return "c"

    def topics(self, names: Iterable[str]) -> dict[str, Topic]:
        self.asked += 1
        if self.asked < 3:
            raise RunError(Diagnostic(self.code, "no"))
        return {name: Topic(name, "id", 4) for name in names}


@pytest.fixture(autouse=True)
def _no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "_create", lambda *_: None)
    monkeypatch.setattr(target, "_limit", lambda *_: 1)


def test_it_is_waited_for(tmp_path: Path) -> None:
    found = target.find(Slow("MS091"), {}, "t", target.NewTopic(), NodeContext("k", tmp_path, LocalStorage(tmp_path)))  # type: ignore[arg-type]
    assert found.partitions == 4


def test_other_failures_are_not(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="MS092"):
        target.find(Slow("MS092"), {}, "t", target.NewTopic(), NodeContext("k", tmp_path, LocalStorage(tmp_path)))  # type: ignore[arg-type]
