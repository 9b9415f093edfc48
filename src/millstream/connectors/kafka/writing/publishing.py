"""One epoch's rows go to the topic: one Spark task per lane, and again for the lanes that did not make it.

Repeating is safe whatever happened: a lane that has committed shows its marker and is left alone. So a worker that dies, a broker that is
away for a moment, and an attempt that was fenced by a late one of our own cost another round and nothing else.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from millstream.connectors.kafka.writing import lanes
from millstream.errors import Diagnostic, RunError, TransientError
from millstream.plan import shipping
from millstream.plan.components import Epoch
from millstream.plan.workers import worker_died

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROUNDS = 6


def publish(messages: DataFrame, job: lanes.Job, epoch: Epoch) -> list[int]:
    """The lanes that have the epoch now, all that have rows."""
    found: list[lanes.Outcome] = []
    for turn in range(_ROUNDS):
        started = time.monotonic()
        try:
            found = _round(messages, job, epoch)
        except Exception as error:
            if turn == _ROUNDS - 1 or not worker_died(error):
                raise
            found = []
        else:
            refuse(found, job, epoch)
            if all(each.outcome in {"done", "held"} for each in found):
                return [each.lane for each in found]
            _require_time(found, job, epoch, time.monotonic() - started)
            if turn and any("UNKNOWN_TOPIC" in each.detail for each in found):
                break  # it is gone, or the cluster is not itself: the next start looks
        time.sleep(min(0.2 * 2**turn, 3))
    raise given_up(found, epoch)


def refuse(outcomes: list[lanes.Outcome], job: lanes.Job, epoch: Epoch) -> None:
    """What no other round can mend."""
    for each in outcomes:
        where = f"lane {each.lane} of topic `{job.topic}`"
        if each.outcome == "history":
            message = f"sink `{epoch.sink}` already holds rows of another history: {where}, epoch {epoch.number}"
            detail = f"{each.detail}; the checkpoint was restored from an older copy; nothing was written"
            raise RunError(Diagnostic("MS055", message, detail=detail, help="go on with the newest checkpoint"))
        if each.outcome == "taken":
            detail = f"{where}: {each.detail}; whatever it has written stays, and is there once"
            help_ = "does a copy of the pipeline run on a copy of the checkpoint? run one of them"
            raise RunError(Diagnostic("MS095", f"another run writes as sink `{epoch.sink}` now", detail=detail, help=help_))
        if each.outcome == "missing":
            message = f"sink `{epoch.sink}` cannot tell whether epoch {epoch.number} was written: {where} lacks its marker"
            detail = f"{each.detail}; the markers are the offsets of the consumer group `{job.group}`"
            raise RunError(Diagnostic("MS096", message, detail=detail))
        if each.outcome == "refused":
            code = "MS092" if "AUTHORIZATION" in each.detail else "MS097"
            raise RunError(Diagnostic(code, f"Kafka refuses what sink `{epoch.sink}` writes to `{job.topic}`: {each.detail}"))


def given_up(outcomes: list[lanes.Outcome], epoch: Epoch) -> RunError:
    said = next((each.detail for each in outcomes if each.outcome not in {"done", "held"}), "no lane has answered")
    return TransientError(Diagnostic("MS090", f"sink `{epoch.sink}` could not write to Kafka: {said}"))


def _require_time(outcomes: list[lanes.Outcome], job: lanes.Job, epoch: Epoch, seconds: float) -> None:
    """The broker ends transactions that take too long, in the same words in which it tells of another owner."""
    limit = job.client["transaction.timeout.ms"] / 1000
    slow = [each for each in outcomes if each.outcome == "fenced"]
    if slow and seconds >= limit:
        message = f"sink `{epoch.sink}` needs longer for epoch {epoch.number} than `transaction_timeout` allows: {limit:g} s"
        detail = f"lane {slow[0].lane} took {seconds:.0f} s; the epoch is not written, and comes again at the next start ({slow[0].detail})"
        help_ = "raise `transaction_timeout`, or make epochs smaller where they are read: `max_rows_per_epoch`"
        raise RunError(Diagnostic("MS098", message, detail=detail, help=help_))


def _round(messages: DataFrame, job: lanes.Job, epoch: Epoch) -> list[lanes.Outcome]:
    from pyspark import cloudpickle

    from millstream.connectors import kafka

    assert epoch.context is not None
    function = lanes.publish(job)
    with shipping.by_value(cloudpickle, epoch.context.directory, function, kafka):
        rows = messages.mapInArrow(function, lanes.OUTCOME).collect()  # type: ignore[arg-type]  # it gets an iterator
    return [lanes.Outcome(*row) for row in rows]
