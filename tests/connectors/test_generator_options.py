"""A generator's options: what is refused, which columns come out, where the end is. No Spark."""

import json
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from tests.connectors.conftest import opened

from millstream.clients.storage import LocalStorage
from millstream.connectors.generator.source import GeneratorSource
from millstream.errors import SpecError
from millstream.plan.components import NodeContext, Progress

EVERY_KIND = {
    "id": {"type": "sequence", "start": 5, "step": -2},
    "user": {"type": "choice", "values": ["ann", "bob"], "weights": [3, 1]},
    "whole": {"type": "uniform", "min": 1, "max": 100},
    "real": {"type": "uniform", "min": 0.5, "max": 2},
    "bell": {"type": "normal", "mean": 10, "stddev": 2},
    "at": {"type": "timestamp", "start": "2026-01-01T00:00:00Z", "step": "10ms", "jitter": "1s"},
    "key": {"type": "uuid"},
    "name": {"type": "template", "template": "u-{user}-{id}"},
    "same": {"type": "constant", "value": True},
    "coin": {"type": "bool", "probability": 0.1, "nulls": 0.5},
}


def test_the_schema_is_known_without_spark() -> None:
    schema = GeneratorSource(fields=EVERY_KIND).output()
    kinds = ["int64", "string", "int64", "double", "double", "timestamp[us, tz=UTC]", "string", "string", "bool", "bool"]
    assert [str(kind) for kind in schema.types] == kinds
    assert schema.names == list(EVERY_KIND)


def test_it_survives_the_way_to_yaml_and_back() -> None:
    source = GeneratorSource(fields=EVERY_KIND, rows=10, rows_per_second=0.5, seed=3)
    again = GeneratorSource.model_validate(source.model_dump(mode="json", by_alias=True, exclude_defaults=True))
    assert again == source
    assert hash(again) == hash(source)


@pytest.mark.parametrize(
    ("field", "sentence"),
    [
        pytest.param({"type": "template", "template": "{usr}"}, "did you mean `user`", id="unknown field in a template"),
        pytest.param({"type": "template", "template": "{new}"}, "form a cycle", id="a template of itself"),
        pytest.param({"type": "choice", "values": ["a"], "weights": [1, 2]}, "one number for each of the 1 values", id="weights"),
        pytest.param({"type": "choice", "values": ["a", "b"], "weights": [0, 0]}, "above zero", id="no weight at all"),
        pytest.param({"type": "choice", "values": ["a", 1]}, "mix int and str", id="mixed values"),
        pytest.param({"type": "choice", "values": [True, 1]}, "mix bool and int", id="true is not one"),
        pytest.param({"type": "uniform", "min": 2, "max": 1}, "above `max`", id="bounds the wrong way round"),
        pytest.param({"type": "uniform", "min": -(2**62), "max": 2**62}, "63 bits", id="too wide"),
        pytest.param({"type": "sequence", "nulls": 1.5}, "must be at most 1", id="a share above one"),
    ],
)
def test_a_field_that_makes_no_sense_is_refused(field: dict, sentence: str) -> None:
    with pytest.raises(SpecError, match=sentence):
        GeneratorSource(fields={"user": {"type": "uuid"}, "new": field})


def test_numbers_of_both_kinds_make_a_real_column() -> None:
    source = GeneratorSource(fields={"x": {"type": "choice", "values": [1, 2.5]}})
    assert source.output().field("x").type == pa.float64()


@pytest.mark.parametrize("encode", [lambda offset: offset, json.dumps], ids=["parsed", "text"])
def test_the_end_is_found_in_both_kinds_of_offsets(encode: object) -> None:
    fast = GeneratorSource(fields={"id": {"type": "sequence"}}, rows=2500)
    paced = fast.model_copy(update={"rows_per_second": 100.0})
    slow = fast.model_copy(update={"rows_per_second": 0.5, "rows": 3})
    assert [opened(fast).is_exhausted(encode({"offset": n, "timestamp": 0})) for n in (2000, 2500, 3000)] == [False, True, True]
    assert [opened(paced).is_exhausted(encode(seconds)) for seconds in (24, 25)] == [False, True]
    assert [opened(slow).is_exhausted(encode(seconds)) for seconds in (5, 6)] == [False, True]


def test_without_an_end_it_is_never_exhausted() -> None:
    assert not opened(GeneratorSource(fields={"id": {"type": "sequence"}})).is_exhausted({"offset": 10**12})


def test_rows_beyond_the_end_are_not_counted(tmp_path: Path) -> None:
    source = GeneratorSource(fields={"id": {"type": "sequence"}}, rows=2500)
    offsets = [None, *({"offset": n} for n in (1000, 2000, 3000))]
    context = NodeContext("g", tmp_path, LocalStorage(tmp_path))
    read = [source.open(context).rows_read(Progress(a, b, None, False, context.storage)) for a, b in pairwise(offsets)]
    assert read == [1000, 1000, 500]
