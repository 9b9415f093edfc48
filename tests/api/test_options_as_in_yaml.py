"""`to()` and `map_batches()` take the options that YAML has."""

import pyarrow as pa
import pytest

from millstream import BlackholeSink, MillstreamError, StreamEnvironment
from millstream.spec.loader import loads

ROWS = [{"id": 1}]


def same(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch


def test_a_sink_says_what_happens_to_rows_that_its_target_refuses() -> None:
    env = StreamEnvironment("p")
    env.from_rows(ROWS, name="o").to(BlackholeSink(), "out", on_error=env.dead_letters(BlackholeSink(), "bad"))
    text = "name: p\nsources: {o: {type: memory, rows: [{id: 1}]}}\n"
    text += "sinks: {bad: {type: blackhole}, out: {type: blackhole, from: o, on_error: {dead_letter: bad}}}"
    assert loads(text).require().by_name == env.topology().by_name


def test_a_dead_letter_may_be_written_as_in_yaml() -> None:
    env = StreamEnvironment("p")
    env.from_rows(ROWS).to(BlackholeSink(), "out", on_error={"dead_letter": "bad"})  # type: ignore[arg-type]  # checked at run time
    assert env.topology().node("out").dead_letter == "bad"


def test_an_unknown_outcome_is_refused() -> None:
    with pytest.raises(MillstreamError, match="MS008"):
        StreamEnvironment("p").from_rows(ROWS).to(BlackholeSink(), on_error="dorp")  # type: ignore[arg-type]  # the mistake


@pytest.mark.parametrize("method", ["map_batches", "flat_map"])
def test_functions_over_batches_have_a_size_and_may_vary(method: str) -> None:
    env = StreamEnvironment("p")
    stream = getattr(env.from_rows(ROWS), method)(same, batch_size=100, deterministic=False)
    component = env.topology().node(stream.name).component
    assert (component.batch_size, component.deterministic) == (100, False)


def test_a_wrong_event_time_is_told_with_a_code() -> None:
    with pytest.raises(MillstreamError, match="MS008"):
        StreamEnvironment("p").from_rows(ROWS).with_event_time("id", watermark="soon")
