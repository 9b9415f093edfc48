from __future__ import annotations

from pathlib import Path

import pytest

from millstream.errors import SetupError
from millstream.jvm import machine


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty tree of control groups, and this process in `/pod` of it."""
    (tmp_path / "self").write_text("0::/pod\n")
    (tmp_path / "groups" / "pod").mkdir(parents=True)
    monkeypatch.setattr(machine, "_OWN_GROUPS", tmp_path / "self")
    monkeypatch.setattr(machine, "_CGROUP", tmp_path / "groups")
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    return tmp_path / "groups"


def test_a_quota_of_half_a_core_is_one_core(groups: Path) -> None:
    (groups / "pod" / "cpu.max").write_text("50000 100000\n")
    assert machine.cores() == 1


def test_a_quota_above_limits_the_group_below(groups: Path) -> None:
    (groups / "cpu.max").write_text("300000 100000\n")
    (groups / "pod" / "cpu.max").write_text("max 100000\n")
    assert machine.cores() == 3


def test_without_a_quota_every_usable_core_counts(groups: Path) -> None:
    assert machine.cores() == 8


def test_the_containers_memory_counts_not_the_hosts(groups: Path) -> None:
    (groups / "pod" / "memory.max").write_text(f"{512 << 20}\n")
    assert machine.memory() == 512 << 20


def test_unlimited_memory_is_the_hosts(groups: Path) -> None:
    (groups / "pod" / "memory.max").write_text("max\n")
    assert machine.memory() > 512 << 20


def test_the_first_version_of_control_groups_is_understood(groups: Path, tmp_path: Path) -> None:
    (tmp_path / "self").write_text("4:memory:/pod\n3:cpu,cpuacct:/pod\n")
    for folder, name, value in (
        ("cpu", "cpu.cfs_quota_us", "150000"),
        ("cpu", "cpu.cfs_period_us", "100000"),
        ("memory", "memory.limit_in_bytes", "1000000"),
    ):
        (groups / folder / "pod").mkdir(parents=True, exist_ok=True)
        (groups / folder / "pod" / name).write_text(value)
    assert (machine.cores(), machine.memory()) == (2, 1000000)


def test_spark_is_found_with_its_version() -> None:
    spark = machine.find_spark()
    assert spark.minor == "4.1"
    assert list(spark.jars) == sorted(spark.jars)


def test_a_client_without_jars_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Spec:
        origin = str(tmp_path / "pyspark" / "__init__.py")

    monkeypatch.setattr(machine, "find_spec", lambda _: Spec)
    with pytest.raises(SetupError, match="holds no Spark jars"):
        machine.find_spark()
