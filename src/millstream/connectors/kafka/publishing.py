"""One epoch's rows go to the topic: one Spark task per lane, and again for the lanes that did not make it.

Repeating is safe whatever happened: a lane that has committed shows its marker and is left alone. So a worker that dies, a broker that is
away for a moment, and an attempt that was fenced by a late one of our own cost another round and nothing else.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from millstream.connectors.kafka import lanes
from millstream.errors import Diagnostic, RunError, TransientError
from millstream.plan import shipping
from millstream.plan.components import Epoch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

_ROUNDS = 6
_DEAD = ("Python worker exited unexpectedly", "Python worker failed to connect", "crashed unexpectedly", "Broken pipe", "Connection reset")


def publish(messages: DataFrame, job: lanes.Job, epoch: Epoch) -> list[int]:
    """The lanes that have the epoch now, all that have rows."""
    last: list[Row] = []
    for turn in range(_ROUNDS):
        try:
            last = _round(messages, job, epoch)
        except Exception as error:
            if turn == _ROUNDS - 1 or not any(sign in str(error) for sign in _DEAD):
                raise
            last = []
        else:
            _refuse(last, job, epoch)
            if all(row["outcome"] in {"done", "held"} for row in last):
                return [row["lane"] for row in last]
        time.sleep(min(0.2 * 2**turn, 3))
    raise _given_up(last, epoch)


def _round(messages: DataFrame, job: lanes.Job, epoch: Epoch) -> list[Row]:
    from pyspark import cloudpickle

    from millstream.connectors import kafka

    assert epoch.context is not None
    function = lanes.publish(job)
    with shipping.by_value(cloudpickle, epoch.context.directory, function, kafka):
        return messages.mapInArrow(function, lanes.OUTCOME).collect()  # type: ignore[arg-type]  # it gets an iterator


def _refuse(rows: list[Row], job: lanes.Job, epoch: Epoch) -> None:
    """What no other round can mend."""
    for row in rows:
        where = f"lane {row['lane']} of topic `{job.topic}`"
        if row["outcome"] == "history":
            message = f"sink `{epoch.sink}` already holds rows of another history: {where}, epoch {epoch.number}"
            detail = f"{row['detail']}; the checkpoint was restored from an older copy, or another copy of the pipeline is running"
            raise RunError(Diagnostic("MS055", message, detail=detail, help="run one copy, from the newest checkpoint"))
        if row["outcome"] == "missing":
            message = f"sink `{epoch.sink}` cannot tell whether epoch {epoch.number} was written: {where} lacks its marker"
            detail = f"{row['detail']}; the markers are the offsets of the consumer group `{job.group}`"
            raise RunError(Diagnostic("MS096", message, detail=detail))
        if row["outcome"] == "refused":
            raise RunError(Diagnostic("MS097", f"Kafka refuses what sink `{epoch.sink}` writes to `{job.topic}`: {row['detail']}"))


def _given_up(rows: list[Row], epoch: Epoch) -> RunError:
    fenced = [row["detail"] for row in rows if row["outcome"] == "fenced"]
    if fenced:
        message = f"somebody else writes as sink `{epoch.sink}`"
        help_ = "does another copy of the pipeline run, on a copy of the checkpoint? or is an epoch longer than `transaction_timeout`?"
        return RunError(Diagnostic("MS095", message, detail=fenced[0], help=help_))
    said = next((row["detail"] for row in rows if row["outcome"] == "later"), "no lane has answered")
    return TransientError(Diagnostic("MS090", f"sink `{epoch.sink}` could not write to Kafka: {said}"))
