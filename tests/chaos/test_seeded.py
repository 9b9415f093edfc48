"""What a victim does by chance is the same for the same seed and start, so that `SEED=…` repeats a run."""

from __future__ import annotations

import pytest
from tests.chaos import arena, kafka_victim, postgres_victim

from millstream.connectors.postgres.write.given_rows import SmallWay
from millstream.sql.catalyst.small_rows import SmallRows


def ways(monkeypatch: pytest.MonkeyPatch, seed: int, start: int) -> tuple[list[bool], list[bool]]:
    monkeypatch.setattr(arena, "SEED", seed)
    monkeypatch.setenv(arena.START, str(start))
    is_tried, is_open = kafka_victim.either_way(), postgres_victim.take_turns()
    rows, way = SmallRows(build=None), SmallWay()  # type: ignore[arg-type]  # nothing is built
    return [is_tried(rows) for _ in range(40)], [is_open(way) for _ in range(4)]


def test_the_same_seed_and_start_do_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ways(monkeypatch, 7, 1) == ways(monkeypatch, 7, 1)


def test_other_seeds_and_later_starts_do_other_things(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len({str(ways(monkeypatch, seed, start)[0]) for seed in (7, 8) for start in (1, 2)}) == 4
    assert len({str(ways(monkeypatch, 7, start)[1]) for start in range(20)}) == 2
