"""A plan and its YAML are the same plan."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream import BlackholeSink, FileSink, FileSource, MemorySource, PrintSink, StreamEnvironment, col
from millstream.errors import SpecError
from millstream.plan.document import from_yaml
from millstream.plan.topology import Topology
from millstream.spec.loader import loads

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}(\.[a-z][a-z0-9_]{0,5})?", fullmatch=True)
PATHS = st.text(min_size=1, max_size=12).filter(lambda path: not path.startswith("secret:"))  # a path takes no secret
SOURCES = st.one_of(
    st.builds(lambda n: MemorySource(rows=tuple({"id": i, "user": "ü"} for i in range(n + 1))), st.integers(0, 3)),
    st.builds(lambda p: FileSource(path=p, format="json", schema={"id": "int64", "user": "string"}), PATHS),
)
SINKS = st.one_of(
    st.just(BlackholeSink()),
    st.builds(PrintSink, sample_every=st.integers(1, 9)),
    st.builds(lambda f: FileSink(path="out", format=f), st.sampled_from(["parquet", "json", "csv"])),
)


def double(batch):
    return batch


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    names = draw(st.lists(NAMES, min_size=4, max_size=6, unique=True))
    env = StreamEnvironment(draw(NAMES))
    stream = env.from_source(draw(SOURCES), names[0], primary_key=draw(st.sampled_from(["", "id"])))
    if draw(st.booleans()):
        stream = stream.filter(col("id") > draw(st.integers(-5, 5)), name=names[1])
    if draw(st.booleans()):
        stream = stream.map_batches(double, schema={"id": "int64"}, name=names[2])
    stream.to(draw(SINKS), names[3])
    return env.topology()


@settings(max_examples=60, deadline=None)
@given(topologies())
def test_to_yaml_and_back_is_the_identity(topology: Topology) -> None:
    text = topology.to_yaml()
    assert from_yaml(text) == topology
    loaded = loads(text)
    assert loaded.errors == ()
    assert loaded.require().nodes == topology.nodes


@pytest.mark.parametrize("path", ["\x85", "a\u2028b", "a\u2029"])
def test_line_breaks_of_unicode_come_back(path: str) -> None:
    env = StreamEnvironment("p")
    env.from_source(FileSource(path=path, format="json", schema={"id": "int64"}), "files").to(BlackholeSink(), "out")
    assert from_yaml(env.topology().to_yaml()) == env.topology()


@pytest.mark.parametrize("path", ["0E0", "1e5", "-1E+3", "0x1f", "1_000", "2026-01-01"])
def test_texts_that_look_like_numbers_stay_texts(path: str) -> None:
    env = StreamEnvironment("p")
    env.from_source(FileSource(path=path, format="json", schema={"id": "int64"}), "files").to(BlackholeSink(), "out")
    assert loads(env.topology().to_yaml()).require().nodes == env.topology().nodes


def test_a_lambda_is_refused_with_its_place() -> None:
    env = StreamEnvironment("p")
    env.from_rows([{"id": 1}]).map_batches(lambda batch: batch, name="odd").to(BlackholeSink())
    with pytest.raises(SpecError) as refused:
        env.topology().to_yaml()
    (error,) = refused.value.diagnostics
    assert error.code == "MS034"
    assert "test_document.py" in error.message
