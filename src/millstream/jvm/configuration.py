"""Spark's settings: our defaults, overridden by the user's settings.

Each default was measured, or it prevents a leak (files in the working directory, an open port, a log on the terminal). Some settings of the
user's are not used, because the pipeline sets the same thing elsewhere; a warning names them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from millstream.errors import Diagnostic
from millstream.jvm import local_files
from millstream.jvm.profiles import Profile

_STREAMING = "org.apache.spark.sql.execution.streaming"
_INSTEAD: Mapping[str, tuple[str, str]] = {
    "spark.master": ("", "`settings.master` or `--master` says where Spark runs"),
    "spark.app.name": ("", "the pipeline's `name` is the application's name"),
    "spark.remote": ("", "Millstream drives the JVM itself and needs Spark's classic API"),
    "spark.api.mode": ("classic", "Millstream drives the JVM itself and needs Spark's classic API"),
    "spark.submit.deployMode": ("client", "the driver runs where `millstream run` is started"),
}
_SUBMIT = ("spark.jars.packages", "spark.jars.ivySettings", "spark.jars.repositories", "spark.submit.pyFiles", "spark.archives")


def is_local(master: str) -> bool:
    """Whether everything runs inside one JVM."""
    return master == "local" or master.startswith("local[")


def local_cores(master: str, cores: int) -> int:
    """The task slots of a local master."""
    count = re.match(r"local\[(\d+)", master)
    return int(count[1]) if count else 1 if master == "local" else cores


def needs_submit(master: str, conf: Mapping[str, str]) -> bool:
    """Whether SparkSubmit is needed: for clusters, and for settings that only it reads."""
    return not is_local(master) or any(conf.get(name) for name in _SUBMIT)


def accept_conf(conf: Mapping[str, str]) -> tuple[dict[str, str], tuple[Diagnostic, ...]]:
    """The user's settings without those that are not allowed, and a warning for each of them."""
    refused = {name: help for name, (fine, help) in _INSTEAD.items() if name in conf and conf[name] != fine}
    warnings = [
        Diagnostic("MS046", f"`{name}` in `settings.spark` is not used", level="warning", help=help) for name, help in refused.items()
    ]
    return {name: value for name, value in conf.items() if name not in _INSTEAD}, tuple(warnings)


def defaults(master: str, profile: Profile, cores: int, folder: Path) -> dict[str, str]:
    """Settings for a new session; `folder` is for files that Spark writes besides results."""
    conf = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 2),  # larger batches: 2.6 times the rows of `mapInArrow`
        "spark.sql.streaming.metricsEnabled": "false",
        "spark.sql.streaming.pollingDelay": "50ms",  # otherwise an idle source is polled 100 times a second: a third of a core
        "spark.sql.streaming.stateStore.providerClass": f"{_STREAMING}.state.RocksDBStateStoreProvider",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        **_history(),
    }
    if is_local(master):
        conf |= _local(folder) | {"spark.sql.shuffle.partitions": str(local_cores(master, cores))}
    return conf | (_few_threads() if profile == "small" else {})


def _local(folder: Path) -> dict[str, str]:
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.authenticate": "true",  # other users of the machine reach the ports too
        "spark.local.dir": str(folder),
        "spark.pyspark.python": sys.executable,
        # listing a few hundred local files is quicker here than as a Spark job: 0.35 s instead of 1.8 s for an epoch of 300
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
        **local_files.RAW,
        "spark.sql.streaming.checkpointFileManagerClass": f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager",
    }


def _history() -> dict[str, str]:
    """The history of finished work that Spark keeps for its web page, which is not used."""
    return {
        "spark.ui.liveUpdate.period": "-1",
        "spark.ui.retainedJobs": "20",
        "spark.ui.retainedStages": "20",
        "spark.ui.retainedTasks": "200",
        "spark.sql.ui.retainedExecutions": "20",
        "spark.sql.streaming.ui.enabled": "false",
    }


def _few_threads() -> dict[str, str]:
    pools = ("rpc.io", "shuffle.io")
    threads = {f"spark.{pool}.{side}Threads": "1" for pool in pools for side in ("server", "client")}
    return threads | {
        "spark.rpc.netty.dispatcher.numThreads": "2",
        "spark.executor.heartbeatInterval": "30s",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.streaming.pollingDelay": "200ms",
        "spark.sql.streaming.numRecentProgressUpdates": "10",
        "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
    }
