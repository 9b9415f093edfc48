from __future__ import annotations

from pathlib import Path

import pytest

from millstream.jvm.configuration import accept_conf, defaults, is_local, local_cores, needs_submit


@pytest.mark.parametrize(("master", "slots"), [("local", 1), ("local[3]", 3), ("local[*]", 8), ("local[4,2]", 4), ("local[*,2]", 8)])
def test_there_are_as_many_shuffle_partitions_as_task_slots(master: str, slots: int, tmp_path: Path) -> None:
    assert local_cores(master, 8) == slots
    assert defaults(master, "long", 8, tmp_path)["spark.sql.shuffle.partitions"] == str(slots)


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host", "local-cluster[2,1,1024]"])
def test_a_cluster_is_not_local_and_goes_through_submit(master: str, tmp_path: Path) -> None:
    assert not is_local(master)
    assert needs_submit(master, {})
    assert "spark.driver.host" not in defaults(master, "long", 8, tmp_path)


def test_packages_go_through_submit() -> None:
    assert needs_submit("local[2]", {"spark.jars.packages": "a:b:1"})
    assert not needs_submit("local[2]", {"spark.sql.ansi.enabled": "false"})


def test_a_setting_that_the_pipeline_has_elsewhere_is_named_and_not_used() -> None:
    conf, warnings = accept_conf({"spark.master": "local[1]", "spark.remote": "sc://host", "spark.sql.ansi.enabled": "false"})
    assert conf == {"spark.sql.ansi.enabled": "false"}
    assert [(warning.code, warning.level) for warning in warnings] == [("MS046", "warning")] * 2
    assert "`settings.master`" in warnings[0].help


def test_the_same_setting_with_the_right_value_is_no_warning() -> None:
    assert accept_conf({"spark.submit.deployMode": "client", "spark.api.mode": "classic"}) == ({}, ())


def test_nothing_is_written_outside_of_the_scratch_folder(tmp_path: Path) -> None:
    conf = defaults("local[2]", "long", 2, tmp_path)
    assert conf["spark.local.dir"] == str(tmp_path)
    assert conf["spark.sql.warehouse.dir"].startswith(tmp_path.as_uri())


def test_the_small_profile_has_fewer_threads_than_the_others(tmp_path: Path) -> None:
    assert "spark.rpc.io.serverThreads" in defaults("local[1]", "small", 1, tmp_path)
    assert "spark.rpc.io.serverThreads" not in defaults("local[1]", "long", 1, tmp_path)
