"""A million JSON rows of 200 bytes into a Kafka topic of four partitions: what does exactly-once cost, against Spark's own writer?

Both write in turns, in one session, to one broker on the same cores; the best of three counts, since whatever else the machine does
only ever adds. CPU is that of the pipeline, without the broker's. Then the same with epochs of a hundred rows: what one costs.
"""

from __future__ import annotations

import json
from typing import Any

from bench.figures import Figure, cost_of, python

ROWS, EPOCHS = 1_000_000, 20


def measure() -> list[Figure]:
    large, small = _runs("rows", ROWS), _runs("epochs", EPOCHS)
    ours, theirs = _best(large["exactly_once"]), _best(large["at_least_once"])
    parts = ours["parts"]
    return [
        Figure("exactly once", ROWS / ours["wall"], "rows/s"),
        Figure("… Spark's own writer, at least once", ROWS / theirs["wall"], "rows/s"),
        Figure("throughput, ratio", theirs["wall"] / ours["wall"], "", bar=0.6, floor=True),
        Figure("CPU, ratio", ours["cpu"] / theirs["cpu"], "", note=f"{ours['cpu']:.1f} s against {theirs['cpu']:.1f} s"),
        Figure("of which: computing rows into Spark's shuffle", parts["stage"], "s"),
        Figure("… lanes: reading them, producing, transactions", parts["lanes"], "s"),
        Figure("… plan and logbook", parts["commit"] - parts["lanes"], "s"),
        Figure("… Spark's epoch, and starting and ending the query", ours["wall"] - parts["stage"] - parts["commit"], "s"),
        Figure("an epoch of 100 rows, exactly once", _best(small["exactly_once"])["wall"] / EPOCHS * 1000, "ms"),
        Figure("… Spark's own writer", _best(small["at_least_once"])["wall"] / EPOCHS * 1000, "ms"),
    ]


def _runs(kind: str, amount: int) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = json.loads(cost_of(python("kafka_sink.py", kind, str(amount))).output.splitlines()[-1])
    return found


def _best(runs: list[dict[str, Any]]) -> dict[str, Any]:
    return min(runs, key=lambda run: float(run["wall"]))
