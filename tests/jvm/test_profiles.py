from __future__ import annotations

import pytest

from millstream.errors import SetupError
from millstream.jvm.profiles import Profile, flags, heap_bytes, parse_size

MB, GB = 1 << 20, 1 << 30


@pytest.mark.parametrize(
    ("profile", "memory", "heap"),
    [
        ("long", 64 * GB, 4 * GB),
        ("long", 4 * GB, 2 * GB),
        ("short", 64 * GB, GB),
        ("short", GB, 512 * MB),
        ("small", 64 * GB, 512 * MB),
        ("short", 512 * MB, 512 * MB),
    ],
)
def test_the_heap_is_half_of_the_memory_between_what_spark_needs_and_what_it_can_use(profile: Profile, memory: int, heap: int) -> None:
    assert heap_bytes(profile, memory, None) == heap


def test_a_heap_that_is_asked_for_wins() -> None:
    assert heap_bytes("small", 64 * GB, "2GB") == 2 * GB


@pytest.mark.parametrize("text", ["2g", "2G", "2GB", "2 gb", "2048m", "2048MB", "2GiB"])
def test_sizes_are_read_as_spark_and_as_millstream_write_them(text: str) -> None:
    assert parse_size(text) == 2 * GB


@pytest.mark.parametrize("text", ["", "lots", "2x", "-1g"])
def test_other_sizes_are_refused(text: str) -> None:
    with pytest.raises(SetupError, match="MS009"):
        parse_size(text)


def test_a_collector_of_the_users_replaces_ours() -> None:
    chosen = flags("short", GB, "-XX:+UseZGC -Dx='a b'")
    assert "-XX:+UseSerialGC" not in chosen
    assert chosen[-2:] == ["-XX:+UseZGC", "-Dx=a b"]


def test_without_one_ours_stays() -> None:
    assert "-XX:+UseSerialGC" in flags("short", GB, "-Dx=1")


def test_only_long_runs_get_the_second_compiler() -> None:
    assert [profile for profile in ("short", "long", "small") if "-XX:TieredStopAtLevel=1" not in flags(profile, GB)] == ["long"]
