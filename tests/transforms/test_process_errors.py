"""Each mistake around a process function is one diagnostic at its place; with `on_error` the good keys pass and nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.transforms.streams import Bucket, main_rows

from millstream import ProcessFunction, ValueState, read_committed
from millstream.errors import MillstreamError

FUNCTIONS = """
import time
from millstream import BucketFunction, ProcessFunction, ValueState

class Base(ProcessFunction):
    output = {"user": "string", "n": "int64"}
    state = {"n": ValueState("int64")}

    def process(self, key, rows, state, timers):
        return {"user": key, "n": rows.num_rows}

class Raises(Base):
    def process(self, key, rows, state, timers):
        if key == "bob":
            raise LookupError("no such user")

class OtherColumns(Base):
    def process(self, key, rows, state, timers):
        yield {"user": key, "m": 1}

class OtherValues(Base):
    def process(self, key, rows, state, timers):
        yield {"user": key, "n": "many" if key == "bob" else 1}

class OtherState(Base):
    def process(self, key, rows, state, timers):
        state["n"].set("many" if key == "bob" else 1)

class NoRows(Base):
    def process(self, key, rows, state, timers):
        return 7

class NoSuchState(Base):
    def process(self, key, rows, state, timers):
        state["m"].get()

class NoSuchOutput(Base):
    def process(self, key, rows, state, timers):
        yield "alerts", {"user": key}

class Sleeps(Base):
    def process(self, key, rows, state, timers):
        try:
            time.sleep(60)
        except Exception:
            pass

class NoTable(BucketFunction):
    output = {"user": "string"}
    state = {"user": "string"}

    def process(self, keys, rows, state, moment):
        return rows

class Plain:
    pass

class BadType(Base):
    output = {"user": "text"}

class BadState(Base):
    state = {"n": ValueState("int64", ttl="soon")}

class NoOutput(ProcessFunction):
    pass
"""
PIPELINE = """
sources:
  clicks: {{type: file, path: in, format: json, schema: {{user: string, w: float64, t: "list<string>"}}, mode: {{type: bounded}}}}
transforms:
  fraud:
    type: process
    from: clicks
    key_by: {key}
    function: functions.py:{function}
    timeout: 1s
    on_error: {on_error}
sinks:
  out: {{type: file, from: fraud, path: out, format: parquet}}
{more}
"""
SINK = "  bad: {type: file, path: bad, format: parquet}"


@pytest.fixture
def refused(tmp_path: Path, pipeline: Callable, run: Callable) -> Callable[..., MillstreamError]:
    def go(function: str, key: str = "user", more: str = "", *users: str | None) -> MillstreamError:
        write(tmp_path, *(users or ("ann", "bob", "eve")))
        with pytest.raises(MillstreamError) as failed:
            run(pipeline(PIPELINE.format(function=function, key=key, on_error="fail", more=more)))
        return failed.value

    return go


def write(folder: Path, *users: str | None) -> None:
    (folder / "in").mkdir(exist_ok=True)
    (folder / "functions.py").write_text(FUNCTIONS)
    (folder / "in" / "rows.json").write_text("\n".join(json.dumps({"user": user, "w": 1.5, "t": []}) for user in users))


@pytest.mark.parametrize(
    ("function", "code", "sentence"),
    [
        ("Raises", "MS063", "raised LookupError: no such user"),
        ("OtherColumns", "MS064", "expected the columns `user`, `n`, got `user`, `m`"),
        ("OtherValues", "MS064", "expected `n` as int64"),
        ("OtherState", "MS064", "expected `n` as int64"),
        ("NoRows", "MS064", "expected rows, got int"),
        ("NoSuchState", "MS063", "there is no state `m`; declared: `n`"),
        ("NoSuchOutput", "MS064", "there is no output `alerts`; declared: none"),
        ("Sleeps", "MS076", "it did not return within 1 s"),
        ("NoTable", "MS064", "expected a BucketResult, got Table"),
        ("Plain", "MS016", "`functions.py:Plain` is neither a `ProcessFunction` nor a `BucketFunction`"),
        ("BadType", "MS016", "`text` is not a column type"),
        ("BadState", "MS016", "`soon` is not a duration"),
        ("NoOutput", "MS016", "declares no `output`"),
    ],
)
@pytest.mark.spark
def test_a_mistake_of_the_function_is_named(refused: Callable, tmp_path: Path, function: str, code: str, sentence: str) -> None:
    (found,) = refused(function).diagnostics
    assert found.code == code
    assert sentence in found.message
    assert "fraud" in found.message or code == "MS016"
    assert found.span is not None and found.span.line in {5, 9}
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").glob("*.parquet"))
    if function in {"Raises", "OtherValues", "OtherState"}:
        assert "key: 'bob'" in found.detail
    if code == "MS064":
        assert ("on_error" in found.help) == (function in {"OtherValues", "OtherState"})
    if function in {"Raises", "Sleeps"}:
        assert "functions.py:" in found.detail and " in process" in found.detail


@pytest.mark.spark
def test_a_null_key_stops_the_run(refused: Callable) -> None:
    (found,) = refused("Base", "user", "", "ann", None).diagnostics
    assert found.code == "MS073"
    assert "`fraud`: `user` is null in a row: {'user': None" in found.message


@pytest.mark.spark
def test_an_output_that_is_not_declared_is_refused(tmp_path: Path, pipeline: Callable, run: Callable) -> None:
    write(tmp_path, "ann")
    text = PIPELINE.format(function="Base", key="user", on_error="fail", more="")
    text = text.replace("from: fraud", "from: alerts").replace("sinks:", "  alerts: {type: output, from: fraud, output: alerts}\nsinks:")
    with pytest.raises(MillstreamError, match="MS074") as failed:
        run(pipeline(text))
    assert "`fraud` has no output `alerts`" in failed.value.diagnostics[0].message


@pytest.mark.parametrize(("key", "code"), [("w", "MS038"), ("t", "MS038"), ("usr", "MS024")])
def test_check_refuses_keys_that_cannot_be_one(tmp_path: Path, pipeline: Callable, key: str, code: str) -> None:
    write(tmp_path, "ann")
    with pytest.raises(MillstreamError) as failed:
        pipeline(PIPELINE.format(function="Base", key=key, on_error="fail", more=""))
    (found,) = [finding for finding in failed.value.diagnostics if finding.level == "error"]
    assert (found.code, found.span.line if found.span else 0) == (code, 8)


def test_check_finds_a_missing_class_without_importing_anything(tmp_path: Path, pipeline: Callable) -> None:
    write(tmp_path, "ann")
    with pytest.raises(MillstreamError, match=r"MS016[^\n]+no `Bse`"):
        pipeline(PIPELINE.format(function="Bse", key="user", on_error="fail", more=""))


@pytest.mark.spark
def test_with_on_error_the_good_keys_pass_and_the_others_are_letters(tmp_path: Path, pipeline: Callable, run: Callable) -> None:
    write(tmp_path, "ann", None, "bob", "bob", "eve")
    run(pipeline(PIPELINE.format(function="OtherValues", key="user", on_error="{dead_letter: bad}", more=SINK)))
    assert sorted(row["user"] for row in read_committed(str(tmp_path / "out")).to_pylist()) == ["ann", "eve"]
    letters = sorted((json.loads(row["raw"])["user"] or "", row["error"]) for row in read_committed(str(tmp_path / "bad")).to_pylist())
    assert [user for user, _ in letters] == ["", "bob", "bob"]
    assert letters[0][1] == "`user` is null"
    assert "expected `n` as int64" in letters[1][1]


class Picky(ProcessFunction):
    output = {"n": "int64"}
    state = {"n": ValueState("int64")}

    def process(self, key: Any, rows: pa.RecordBatch, state: Any, timers: Any) -> Any:
        state["n"].set(state["n"].get(0) + 1)
        timers.at(rows["at"][0].as_py())
        if rows["bad"][0].as_py():
            raise ValueError("bad")
        yield {"n": state["n"].get()}

    def on_timer(self, key: Any, time: Any, state: Any, timers: Any) -> Any:
        raise ValueError("timer")


def test_the_state_of_a_key_that_fails_stays_as_it_was() -> None:
    schema = pa.schema([("user", pa.string()), ("bad", pa.bool_()), ("at", pa.timestamp("us", "UTC"))])
    bucket, at = Bucket(Picky, schema, isolate=True), datetime(2026, 1, 1, tzinfo=UTC)
    bucket.epoch([{"user": "a", "bad": False, "at": at}])
    (reject,) = bucket.epoch([{"user": "a", "bad": True, "at": at}])
    assert reject["_reject"]["error"] == "ValueError: bad"
    assert main_rows(bucket.epoch([{"user": "a", "bad": False, "at": at}])) == [{"n": 2}]
    (late,) = bucket.epoch([], at)
    assert json.loads(late["_reject"]["raw"]) == {"user": "a"}
    assert bucket.epoch([], at) == []
    assert [row["n"] for row in bucket.stored] == [2]
