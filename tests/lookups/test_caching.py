"""Whatever is asked in whatever order, and however small the cache is: the answers are the table's."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.lookups.reader import Reader
from millstream.lookups.table import CacheSpec, TableSpec

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.string())])


class _Store:
    """A table in a dictionary, which counts."""

    def __init__(self, rows: dict[int, str]) -> None:
        self.rows, self.asked = rows, 0

    def get(self, keys: pa.Table) -> pa.Table:
        self.asked += keys.num_rows
        found = [key for key in keys["k"].to_pylist() if key in self.rows]
        return pa.table({"k": pa.array(found, pa.int64()), "v": pa.array([self.rows[key] for key in found], pa.string())})


ages = st.sampled_from([0.0, 3600.0])
batches = st.lists(st.lists(st.one_of(st.none(), st.integers(0, 12)), max_size=8), max_size=12)


@settings(max_examples=200, deadline=None)
@given(
    asked=batches, present=st.sets(st.integers(0, 12)), most=st.integers(1, 6), negative=st.booleans(), ttl=st.sampled_from([0.0, 3600.0])
)
def test_a_cache_never_changes_an_answer(asked: list, present: set[int], most: int, negative: bool, ttl: float) -> None:
    store = _Store({key: f"v{key}" for key in present})
    reader = Reader(TableSpec("t", "memory", "t", ("k",), ("v",), cache=CacheSpec(ttl, most, negative)), SCHEMA, store)  # type: ignore[arg-type]
    for keys in asked:
        found = reader.find(pa.array(keys, pa.int64()))
        assert found.rows["v"].combine_chunks().take(found.positions).to_pylist() == [store.rows.get(key) for key in keys]


def test_a_large_cache_is_asked_once_per_key() -> None:
    store = _Store({key: str(key) for key in range(0, 50_000, 2)})
    reader = Reader(TableSpec("t", "memory", "t", ("k",), ("v",), cache=CacheSpec(3600, 100_000)), SCHEMA, store)  # type: ignore[arg-type]
    for start in (0, 10_000, 5_000, 0, 20_000):
        found = reader.find(pa.array(range(start, start + 10_000)))
        assert found.positions.null_count == 5_000
    assert store.asked == 30_000


def test_a_full_cache_keeps_working() -> None:
    store = _Store({key: str(key) for key in range(40_000)})
    reader = Reader(TableSpec("t", "memory", "t", ("k",), ("v",), cache=CacheSpec(3600, 12_000)), SCHEMA, store)  # type: ignore[arg-type]
    for start in range(0, 40_000, 5_000):
        found = reader.find(pa.array(range(start, start + 5_000)))
        assert found.rows["v"].combine_chunks().take(found.positions).to_pylist() == [str(key) for key in range(start, start + 5_000)]
    assert reader.find(pa.array(range(35_000, 40_000))).positions.null_count == 0
    assert store.asked == 40_000, "the last ones were remembered"


def test_equal_tables_share_what_is_remembered_and_others_do_not() -> None:
    import pickle
    from dataclasses import replace

    spec = TableSpec("t", "memory", "t", ("k",), ("v",), {"v": pa.string(), "k": pa.int64()}, cache=CacheSpec(1, 1))
    other_order = replace(spec, types={"k": pa.int64(), "v": pa.string()})
    assert spec.cache_key == other_order.cache_key == pickle.loads(pickle.dumps(spec)).cache_key
    assert (
        len({replace(spec, **change).cache_key for change in ({}, {"table": "u"}, {"cache": None}, {"place": "x"}, {"columns": ()})}) == 5
    )
