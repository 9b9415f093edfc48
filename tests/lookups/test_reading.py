"""One question per batch, whatever it holds; and what a cache saves, keeps and forgets. Counted on real servers."""

import time

import pyarrow as pa
import pytest
from tests.lookups.conftest import Bench
from tests.servers.postgres import Database
from tests.servers.redis import Server

from millstream.dev.postgres import NAME
from millstream.errors import RunError
from millstream.lookups.reader import Reader
from millstream.lookups.table import CacheSpec, TableSpec, open_store
from millstream.lookups.values import fit_keys
from millstream.transforms.dynamic_table import DynamicTable

pytestmark = pytest.mark.server


@pytest.fixture
def spec(bench: Bench, request: pytest.FixtureRequest, tmp_path) -> TableSpec:
    options: dict[str, object] = {"backend": bench.backend, "key": "user_id", "columns": {"tier": "string"}, "path": "tables.db"}
    options |= dict(pair.split(": ") for pair in bench.options.split(", "))
    if bench.backend == "postgres":
        server: Database = request.getfixturevalue("postgres")
        options |= {
            "host": "127.0.0.1",
            "port": server.server.port,
            "database": NAME,
            "user": NAME,
            "password": NAME,
        }
    if bench.backend == "redis":
        redis: Server = request.getfixturevalue("redis")
        options["url"] = redis.url
    return DynamicTable.model_validate(options).spec("watched", tmp_path)


def _reader(spec: TableSpec, cache: CacheSpec | None = None) -> Reader:
    from dataclasses import replace

    cached = replace(spec, cache=cache)
    store = open_store(cached)
    return Reader(cached, store.ensure(), store)


def _tiers(reader: Reader, *keys: str | None) -> list[str | None]:
    found = reader.find(pa.array(keys, pa.string()))
    return found.rows["tier"].combine_chunks().take(found.positions).to_pylist()


def test_a_batch_is_one_question_of_distinct_keys(bench: Bench, spec: TableSpec) -> None:
    bench.put("7", "gold")
    reader = _reader(spec)
    many = [str(number % 50) for number in range(5000)]
    assert _tiers(reader, *many).count("gold") == 100
    assert reader.questions == 1
    assert _tiers(reader, None, None) == [None, None]
    assert reader.questions == 1, "nothing is asked when there is nothing to ask"


def test_without_a_cache_every_batch_asks(bench: Bench, spec: TableSpec) -> None:
    bench.put("7", "gold")
    reader = _reader(spec)
    assert [_tiers(reader, "7", "8") for _ in range(3)] == [["gold", None]] * 3
    assert reader.questions == 3


def test_a_cache_asks_once_and_sees_nothing_new_before_its_time(bench: Bench, spec: TableSpec) -> None:
    bench.put("7", "gold")
    reader = _reader(spec, CacheSpec(3600, 100))
    assert _tiers(reader, "7", "8") == ["gold", None]
    bench.put("7", "silver")
    bench.put("8", "new")
    assert _tiers(reader, "7", "8") == ["gold", None]
    assert reader.questions == 1


def test_entries_grow_old(bench: Bench, spec: TableSpec) -> None:
    bench.put("7", "gold")
    reader = _reader(spec, CacheSpec(0.2, 100))
    assert _tiers(reader, "7", "8") == ["gold", None]
    bench.delete("7")
    bench.put("8", "new")
    time.sleep(0.25)
    assert _tiers(reader, "7", "8") == [None, "new"]


def test_absence_is_forgotten_where_it_is_not_to_be_kept(bench: Bench, spec: TableSpec) -> None:
    bench.put("7", "gold")
    reader = _reader(spec, CacheSpec(3600, 100, negative=False))
    assert _tiers(reader, "7", "8") == ["gold", None]
    bench.put("8", "new")
    assert _tiers(reader, "7", "8") == ["gold", "new"]


def test_what_was_not_used_for_longest_goes(bench: Bench, spec: TableSpec) -> None:
    for key in ("1", "2", "3"):
        bench.put(key, key)
    reader = _reader(spec, CacheSpec(3600, 2))
    for key in ("1", "2", "1", "3", "1"):
        assert _tiers(reader, key) == [key]
    assert reader.questions == 3, "1, 2 and 3 were asked once each"
    assert _tiers(reader, "2") == ["2"]
    assert reader.questions == 4, "2 had gone"


def test_refresh_sees_changes_of_what_is_remembered(bench: Bench, spec: TableSpec) -> None:
    if bench.backend == "redis":
        pytest.skip("Redis cannot tell which rows have changed, and a check says so")
    bench.put("7", "gold")
    reader = _reader(spec, CacheSpec(3600, 100, refresh=0.05))
    assert _tiers(reader, "7", "8") == ["gold", None]
    bench.put("7", "silver")
    bench.put("8", "new")
    time.sleep(0.1)
    assert _tiers(reader, "7", "8") == ["silver", "new"]


def test_keys_that_no_table_has_are_not_found(bench: Bench, spec: TableSpec) -> None:
    bench.put("a", "x")
    assert _tiers(_reader(spec), "a\0b", "a", "'; DROP TABLE watched; --") == [None, "x", None]


def test_a_whole_number_out_of_range_is_no_key_and_a_text_is_a_mistake() -> None:
    assert fit_keys(pa.array([1, 2**40, None]), pa.int32(), "t").to_pylist() == [1, None, None]
    with pytest.raises(RunError, match="the key of `t` is `int32`, but it is looked up by `string`"):
        fit_keys(pa.array(["1"]), pa.int32(), "t")


def test_put_replaces_and_delete_counts(spec: TableSpec) -> None:
    store = open_store(spec)
    store.ensure()
    store.put(pa.table({"user_id": ["1", "2"], "tier": ["a", "b"]}))
    store.put(pa.table({"user_id": ["2"], "tier": pa.array([None], pa.string())}))
    assert sorted(store.first(10).to_pylist(), key=str) == [{"user_id": "1", "tier": "a"}, {"user_id": "2", "tier": None}]
    assert store.delete(pa.table({"user_id": ["1", "3"]})) == 1
    with pytest.raises(RunError, match="NUL"):
        store.put(pa.table({"user_id": ["x\0"], "tier": ["a"]}))
