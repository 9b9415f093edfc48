"""Type names and Arrow types are two ways to say the same."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.plan import types

SIMPLE = st.sampled_from(["bool", "int8", "int32", "int64", "float32", "float64", "string", "binary", "date", "timestamp", "decimal(18,2)"])
NESTED = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        inner.map(lambda t: f"list<{t}>"),
        st.tuples(SIMPLE, inner).map(lambda p: f"map<{p[0]}, {p[1]}>"),
        st.lists(inner, min_size=1, max_size=3).map(lambda ts: "struct<" + ", ".join(f"f{i}: {t}" for i, t in enumerate(ts)) + ">"),
    ),
    max_leaves=6,
)


@given(NESTED)
def test_a_name_survives_the_way_to_arrow_and_back(name: str) -> None:
    assert types.name_of(types.parse(name)) == name


@pytest.mark.parametrize(("alias", "kind"), [("long", pa.int64()), ("double", pa.float64()), ("TEXT", None), ("Utf8", pa.string())])
def test_common_names_of_other_systems_are_read(alias: str, kind: pa.DataType | None) -> None:
    if kind is None:
        with pytest.raises(ValueError, match="column type"):
            types.parse(alias)
    else:
        assert types.parse(alias) == kind


@pytest.mark.parametrize("text", ["strng", "decimal(50,2)", "list<", "map<string>", "uint64", ""])
def test_other_names_are_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"type|range"):
        types.parse(text)
