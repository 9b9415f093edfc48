"""On a file system that only has put-once, a lease has one owner, and an owner that was replaced knows it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from millstream.checkpoint.lease import Heartbeat, Pace
from millstream.clients.storage import LocalStorage
from millstream.errors import RunError

QUICK = Pace(beat=0.05, stale=1.0)
"""For owners that are to be replaced."""
PATIENT = Pace(beat=0.05, stale=120.0)
"""For owners that live, on a machine that may be busy."""


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
    lease = Heartbeat.take(LocalStorage(tmp_path, durable=False), "ck", PATIENT)
    with pytest.raises(RunError, match="MS050"):
        Heartbeat.take(LocalStorage(tmp_path, durable=False), "ck", PATIENT)
    assert lease.lost_to() == ""
    lease.release()
    Heartbeat.take(LocalStorage(tmp_path, durable=False), "ck", PATIENT).release()


def test_a_lease_that_this_process_gave_up_without_a_word_is_free_at_once(tmp_path: Path) -> None:
    storage = Unreachable(tmp_path, durable=False)
    lease = Heartbeat.take(storage, "ck", Pace(beat=10.0, stale=3600.0))
    storage.away = True  # the JVM through which it was reached is gone
    lease.release()
    Heartbeat.take(LocalStorage(tmp_path, durable=False), "ck", Pace(beat=10.0, stale=3600.0)).release()


def test_a_paused_owner_is_replaced_and_knows_it_when_it_wakes(tmp_path: Path, elsewhere: Callable[[str], None]) -> None:
    elsewhere("first")
    first = Heartbeat.take(LocalStorage(tmp_path, durable=False), "ck", QUICK)
    pause(first)
    elsewhere("second")
    second = Heartbeat.take(LocalStorage(tmp_path, durable=False), "ck", QUICK)
    second._pace = PATIENT
    until(first.lost_to)
    assert "on host second" in first.lost_to()
    first.release()  # takes nothing from the new owner
    assert second.lost_to() == ""
    with pytest.raises(RunError, match="on host second"):
        Heartbeat.take(LocalStorage(tmp_path, durable=False), "ck", PATIENT)
    second.release()


def test_of_two_starters_one_succeeds(tmp_path: Path, elsewhere: Callable[[str], None]) -> None:
    elsewhere("first")
    pause(Heartbeat.take(LocalStorage(tmp_path, durable=False), "ck", QUICK))
    elsewhere("others")
    taken: list[Heartbeat] = []

    def start() -> None:
        try:
            taken.append(Heartbeat.take(LocalStorage(tmp_path, durable=False), "ck", QUICK))
        except RunError:
            return

    starters = [threading.Thread(target=start) for _ in range(4)]
    for each in starters:
        each.start()
    for each in starters:
        each.join()
    assert len(taken) == 1
    taken[0].release()


class Replacing(LocalStorage):
    """An object store: who renames last wins, and everybody is told that it worked."""

    blind = False

    def put_once(self, path: str, data: bytes) -> bool:
        self.put(path, data)
        return True

    def names(self, path: str = "") -> list[str]:
        found, self.blind = [] if self.blind else super().names(path), False
        return found


def test_where_both_starters_are_told_that_they_succeeded_the_first_one_finds_out(tmp_path: Path, elsewhere: Callable[[str], None]) -> None:
    elsewhere("first")
    first = Heartbeat.take(Replacing(tmp_path, durable=False), "ck", PATIENT)
    elsewhere("second")
    late = Replacing(tmp_path, durable=False)
    late.blind = True  # it has looked before the first one's file was there
    second = Heartbeat.take(late, "ck", PATIENT)
    until(first.lost_to)
    assert "on host second" in first.lost_to() and second.lost_to() == ""
    second.release()


def test_a_clock_that_is_wrong_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: Callable[[str], None]) -> None:
    elsewhere("first")
    lease = Heartbeat.take(LocalStorage(tmp_path, durable=False), "ck", PATIENT)
    monkeypatch.setattr(time, "time", lambda: 4e9)
    with pytest.raises(RunError, match="MS050"):
        Heartbeat.take(LocalStorage(tmp_path, durable=False), "ck", PATIENT)
    lease.release()


def test_an_owner_that_cannot_renew_counts_as_replaced(tmp_path: Path) -> None:
    storage = Unreachable(tmp_path, durable=False)
    lease = Heartbeat.take(storage, "ck", QUICK)
    storage.away = True
    until(lease.lost_to)
    assert "could not be renewed" in lease.lost_to()


def test_a_dead_process_of_this_host_is_replaced_at_once(tmp_path: Path) -> None:
    lease = Heartbeat.take(LocalStorage(tmp_path, durable=False), "ck", Pace(beat=60, stale=600))
    pause(lease)
    gone = {**json.loads((tmp_path / "lock-1").read_text()), "pid": 2**22 + 1}
    (tmp_path / "lock-1").write_text(json.dumps(gone))
    Heartbeat.take(LocalStorage(tmp_path, durable=False), "ck", Pace(beat=60, stale=600)).release()
