"""An epoch whose lanes are half written is repeated with the same messages, or refused."""

from __future__ import annotations

import pytest
from tests.connectors.kafka.stage import Stage, stage

from millstream.sql.check.query import Query

pytestmark = pytest.mark.spark
__all__ = ["stage"]
SECRET = "SELECT base64(aes_encrypt(k, '0123456789abcdef')) AS k, n FROM m"
PLAIN = "SELECT k, n FROM m"


def test_messages_that_are_not_what_they_were_stop_the_run(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Query, "deterministic", True)
    stage.half_done(monkeypatch, 30, sql=SECRET)
    held = stage.rows()
    assert 0 < len(held) < 30
    assert stage.code(0, sql=SECRET) == "MS142"
    assert len(stage.rows()) == len(held)
    report = stage.go(0, sql=SECRET, accept_replay=True)  # the control: without the comparison rows are lost and doubled
    assert "epoch 0 is finished with the rows as they are now" in report.notes[0]
    assert sorted(row["n"] for row in stage.rows()) != list(range(30))


def test_a_topic_that_was_renamed_is_noticed_and_filled_again(stage: Stage) -> None:
    stage.go(20, sql=PLAIN)
    stage.target = stage.kafka.topic(4)
    assert stage.code(5, sql=PLAIN) == "MS140"
    stage.go(0, sql=PLAIN, redeliver=True)
    assert stage.once()
