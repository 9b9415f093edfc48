"""From Kafka to Kafka, one message at a time: how long until a reader of the target has it?"""

from __future__ import annotations

import json
import statistics

from bench.figures import Figure, cost_of, module

_WAYS = {"exactly_once": "micro-batches, exactly once", "at_least_once": "micro-batches, at least once", "real_time": "real-time mode"}


def measure() -> list[Figure]:
    figures = []
    for way, label in _WAYS.items():
        times = sorted(json.loads(cost_of(module("kafka.latency_run", way)).output))
        figures += [
            Figure(f"{label}: p50", statistics.median(times) * 1000, "ms"),
            Figure("… p99", times[int(len(times) * 0.99)] * 1000, "ms"),
        ]
    return figures
