"""The driver's log of a sink: who may note that no epoch is half written, and what is read of older versions. No Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from millstream.clients.storage import LocalStorage
from millstream.connectors.kafka.write.epoch_log import EpochLog, EpochPlan


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


def test_the_last_run_that_has_claimed_notes_the_rest(storage: LocalStorage) -> None:
    older, newer = EpochLog(storage, "q/t"), EpochLog(storage, "q/t")
    older.record_claim("older", [-1, 0, 1])
    older.finish(5, "d5", [-1], small=True)
    newer.record_claim("newer", [-1, 0, 1])
    older.record_rest("older")
    assert not EpochLog(storage, "q/t").done().rested
    newer.record_rest("newer")
    assert EpochLog(storage, "q/t").done().rested


def test_a_claim_ends_the_rest(storage: LocalStorage) -> None:
    log = EpochLog(storage, "q/t")
    log.record_claim("first", [-1])
    log.record_rest("first")
    EpochLog(storage, "q/t").record_claim("second", [-1])
    done = EpochLog(storage, "q/t").done()
    assert (done.run, done.rested) == ("second", False)


def test_the_log_of_an_older_version_is_read(storage: LocalStorage) -> None:
    storage.put("q/t/done.json", json.dumps({"epoch": 3, "digest": "d", "lanes": {"0": [3, 1.5]}, "rested": True}).encode())
    storage.put("q/u/done.json", json.dumps({"epoch": 3, "digest": "d", "lanes": {}}).encode())
    done = EpochLog(storage, "q/t").done()
    assert (done.epoch, done.lanes, done.rested, done.run) == (3, {"0": (3, 1.5)}, True, "")
    assert not EpochLog(storage, "q/u").done().rested


def test_files_that_a_killed_driver_was_writing_are_deleted(storage: LocalStorage) -> None:
    for name in (".done.json.0a1b2c3d4e5f.tmp", ".6.json.0a1b2c3d4e5f.tmp", "4.json", "6.json"):
        storage.put_once(f"q/t/{name}", b"{}")
    EpochLog(storage, "q/t").finish(5, "d5", [])
    assert storage.names("q/t") == ["6.json", "done.json"]


def test_a_plan_counts_until_its_epoch_is_done(storage: LocalStorage) -> None:
    log, plan = EpochLog(storage, "q/t"), EpochPlan("", 4, 1, "d5")
    log.put_once(5, plan)
    assert log.open_plan(5, "d5") == plan
    log.finish(5, "d5", [-1], small=True)
    assert log.open_plan(5, "d5") is None
    assert log.open_plan(5, "other") == plan
