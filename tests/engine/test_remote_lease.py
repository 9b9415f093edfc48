"""On a file system that only has put-once, a lease has one owner, and an owner that was replaced knows it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from millstream.clients.storage import LocalStorage
from millstream.engine.lease import Heartbeat, Pace
from millstream.errors import RunError

QUICK = Pace(beat=0.05, stale=1.0)


class Unreachable(LocalStorage):
    """A folder that can be cut off."""

    away = False

    def names(self, path: str = "") -> list[str]:
        if self.away:
            raise OSError("no route to host")
        return super().names(path)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Owners are told apart by host, so that a test can be several machines."""
    return lambda name: monkeypatch.setattr("socket.gethostname", lambda: name)


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 300
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert condition()


def pause(lease: Heartbeat) -> None:
    """Stop its beat, as a stopped process would."""
    lease._stop.set()


def test_a_living_owner_is_not_replaced(tmp_path: Path) -> None:
    lease = Heartbeat.take(LocalStorage(tmp_path), "ck", QUICK)
    with pytest.raises(RunError, match="MS050"):
        Heartbeat.take(LocalStorage(tmp_path), "ck", QUICK)
    assert lease.lost() == ""
    lease.release()
    Heartbeat.take(LocalStorage(tmp_path), "ck", QUICK).release()


def test_a_lease_that_this_process_gave_up_without_a_word_is_free_at_once(tmp_path: Path) -> None:
    storage = Unreachable(tmp_path)
    lease = Heartbeat.take(storage, "ck", Pace(beat=10.0, stale=3600.0))
    storage.away = True  # the JVM through which it was reached is gone
    lease.release()
    Heartbeat.take(LocalStorage(tmp_path), "ck", Pace(beat=10.0, stale=3600.0)).release()


def test_a_paused_owner_is_replaced_and_knows_it_when_it_wakes(tmp_path: Path, elsewhere: Callable[[str], None]) -> None:
    elsewhere("first")
    first = Heartbeat.take(LocalStorage(tmp_path), "ck", QUICK)
    pause(first)
    elsewhere("second")
    second = Heartbeat.take(LocalStorage(tmp_path), "ck", QUICK)
    until(first.lost)
    assert "on host second" in first.lost()
    first.release()  # takes nothing from the new owner
    assert second.lost() == ""
    with pytest.raises(RunError, match="on host second"):
        Heartbeat.take(LocalStorage(tmp_path), "ck", QUICK)
    second.release()


def test_of_two_starters_one_succeeds(tmp_path: Path, elsewhere: Callable[[str], None]) -> None:
    elsewhere("first")
    pause(Heartbeat.take(LocalStorage(tmp_path), "ck", QUICK))
    elsewhere("others")
    taken: list[Heartbeat] = []

    def start() -> None:
        try:
            taken.append(Heartbeat.take(LocalStorage(tmp_path), "ck", QUICK))
        except RunError:
            return

    starters = [threading.Thread(target=start) for _ in range(4)]
    for each in starters:
        each.start()
    for each in starters:
        each.join()
    assert len(taken) == 1
    taken[0].release()


def test_a_clock_that_is_wrong_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: Callable[[str], None]) -> None:
    elsewhere("first")
    lease = Heartbeat.take(LocalStorage(tmp_path), "ck", QUICK)
    monkeypatch.setattr(time, "time", lambda: 4e9)
    with pytest.raises(RunError, match="MS050"):
        Heartbeat.take(LocalStorage(tmp_path), "ck", QUICK)
    lease.release()


def test_an_owner_that_cannot_renew_counts_as_replaced(tmp_path: Path) -> None:
    storage = Unreachable(tmp_path)
    lease = Heartbeat.take(storage, "ck", QUICK)
    storage.away = True
    until(lease.lost)
    assert "could not be renewed" in lease.lost()


def test_a_dead_process_of_this_host_is_replaced_at_once(tmp_path: Path) -> None:
    lease = Heartbeat.take(LocalStorage(tmp_path), "ck", Pace(beat=60, stale=600))
    pause(lease)
    gone = {**json.loads((tmp_path / "lock-1").read_text()), "pid": 2**22 + 1}
    (tmp_path / "lock-1").write_text(json.dumps(gone))
    Heartbeat.take(LocalStorage(tmp_path), "ck", Pace(beat=60, stale=600)).release()
