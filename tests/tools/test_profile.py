"""The profile of epochs: its phases add up, its stacks can be read by other tools, and the product is as before when it is over."""

from __future__ import annotations

import os
import re
import time
from typing import Any
from xml.etree import ElementTree

import pytest
from bench.profile import main
from bench.profiling.driver import replaced
from bench.profiling.flame import folded, svg
from bench.profiling.jobs import Job, covered, total_ms
from bench.profiling.phases import CALLS, JOBS, OTHER, RULES, WAITING, ProfiledEpoch, profiled_epochs
from bench.profiling.sampler import java_stack
from bench.profiling.spans import EpochTrace, SpanRecorder
from bench.profiling.table import as_dict, as_text, matrix

STACKS = {("q", "a.py:f", "Class.method"): 0.5, ("q", "a.py:f"): 0.25, ("q", "b; c d\n"): 0.0005}


def trace_of(number: int) -> EpochTrace:
    recorder = SpanRecorder()
    trace = recorder.begin("q", number)
    stage = recorder.timed(lambda: recorder.timed(time.sleep, "jvm")(0.004), "python", "stage out")
    stage()
    recorder.timed(time.sleep, "fsync", "commit out")(0.001)
    recorder.end(finished=True)
    trace.counters = {"rules": 0.001, "compiling": 0.0, "generating": 0.0}
    return trace


def progress_of(trace: EpochTrace, at: int) -> dict[str, Any]:
    durations = {"triggerExecution": 40, "addBatch": 20, "walCommit": 5, "latestOffset": 3, "somethingNew": 2}
    return {"timestamp": f"2026-01-01T00:00:00.{at:03d}Z", "durationMs": durations, "numInputRows": 7, "runId": "r"}


@pytest.fixture
def epochs() -> list[ProfiledEpoch]:
    traces = [trace_of(number) for number in range(3)]
    call = [next(span for span in trace.spans if span.kind == "jvm") for trace in traces]
    jobs = [Job("r", span.start + 0.001, span.start + 0.002, 1, 2) for span in call]
    facts = {("q", trace.number): progress_of(trace, 100 + 50 * trace.number) for trace in traces}
    return profiled_epochs(traces, facts, jobs)


def test_the_phases_of_an_epoch_add_up_to_its_duration(epochs: list[ProfiledEpoch]) -> None:
    for epoch in epochs:
        assert sum(epoch.phases.values()) == pytest.approx(epoch.duration)
        assert epoch.phases[JOBS] == pytest.approx(1, abs=0.01) and epoch.phases[RULES] == 1 and epoch.phases[CALLS] >= 1.9
        assert epoch.phases[OTHER] == pytest.approx(40 - 20 - 5 - 3 - 2)
    assert [epoch.phases[WAITING] for epoch in epochs] == [0, pytest.approx(10), pytest.approx(10)]


def test_the_steps_of_an_epoch_have_the_time_of_its_function(epochs: list[ProfiledEpoch]) -> None:
    steps = epochs[0].steps
    assert set(steps) == {"stage out", "commit out", "between the steps"}
    assert sum(steps["stage out"].values()) >= 4 and steps["commit out"]["fsync"] >= 1
    assert epochs[0].counts["jobs"] == 1 and epochs[0].counts["tasks"] == 2 and epochs[0].counts["fsync"] == 1


def test_the_means_of_the_table_add_up(epochs: list[ProfiledEpoch]) -> None:
    found = as_dict(epochs)
    assert sum(row["mean"] for row in found["phases"].values()) == pytest.approx(found["duration"]["mean"])
    text = as_text("q", found)
    assert "somethingNew" in text and "stage out" in text and "1 jobs" in text
    assert "somethingNew" in matrix({"a 1": found, "a 100": found})


def test_overlapping_jobs_count_once() -> None:
    jobs = [Job("", 1.0, 2.0, 1, 1), Job("", 1.5, 3.0, 1, 1), Job("", 9.0, 10.0, 1, 1)]
    assert covered(0.5, 2.5, jobs) == 1.5
    assert total_ms("total (min, med, max (stageId: taskId))\n1.2 s (5 ms, 6 ms, 7 ms (stage 1.0: task 2))") == 1200
    assert total_ms("37 ms") == 37


def test_folded_stacks_are_well_formed() -> None:
    lines = folded(STACKS).splitlines()
    assert len(lines) == 3
    assert all(re.fullmatch(r"[^ ;]+(;[^ ;]+)* \d+", line) for line in lines)
    assert "q;a.py:f;Class.method 500000" in lines


def test_the_flame_graph_is_an_image_of_its_own() -> None:
    text = svg(STACKS, "a < b")
    boxes = ElementTree.fromstring(text).findall(".//{http://www.w3.org/2000/svg}title")
    assert any((box.text or "").startswith("Class.method: 500 ms") for box in boxes)
    assert "<script" not in text and "href" not in text


def test_a_java_stack_begins_at_the_call_from_python() -> None:
    text = (
        'Some("stream" prio=5 Id=14 RUNNABLE\n'
        "\tat app//org.apache.spark.scheduler.DAGScheduler.runJob(DAGScheduler.scala:1)\n"
        "\t-  locked java.lang.Object@1\n"
        "\tat app//org.apache.spark.rdd.RDD$$Lambda$12/0x0000000801.apply(Unknown Source)\n"
        "\tat app//org.apache.spark.rdd.RDD.collect(RDD.scala:1)\n"
        "\tat app//py4j.reflection.ReflectionEngine.invoke(ReflectionEngine.java:1)\n"
        "\tat app//org.example.Outside.run(Outside.java:1)\n)"
    )
    assert java_stack(text) == ("RDD.collect", "DAGScheduler.runJob")


def test_a_replaced_function_is_put_back() -> None:
    class Above:
        def f(self) -> int:
            return 1

    class Below(Above):
        pass

    with replaced(Below, "f", lambda _: 2), replaced(os, "fsync", None):
        assert Below().f() == 2
    assert Below().f() == 1 and "f" not in vars(Below) and callable(os.fsync)


@pytest.mark.parametrize(
    ("words", "said"), [(["missing.yaml"], "there is no file `missing.yaml`"), (["--matrix", "moon"], "there is no case moon")]
)
def test_mistakes_are_told_without_a_trace(words: list[str], said: str) -> None:
    with pytest.raises(SystemExit, match=said):
        main(words)
