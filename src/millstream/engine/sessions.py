"""Opens the Spark session of a plan: its settings, its jars, and JVM options tuned for the plan."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from millstream.jvm import local_files
from millstream.jvm.configuration import is_local as is_local_master
from millstream.jvm.kept_session import dismiss
from millstream.jvm.log import Format, JvmLog
from millstream.jvm.session import Profile, Session, SessionOptions, begin
from millstream.plan.cutting import QueryPlan, cut
from millstream.plan.run_options import log_folder
from millstream.plan.topology import Topology
from millstream.secrets import Secret

INCREMENTAL = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",  # rows are held as they come, without a copy
    "spark.sql.codegen.cache.maxEntries": "5000",  # a few operators have more than Spark's 100 classes: all would be compiled every epoch
}


def open_session(
    topology: Topology,
    queries: tuple[QueryPlan, ...],
    progress: Callable[[str], None] = lambda _: None,
    *,
    logs: bool = True,
    log_format: Format = "text",
    preload: Callable[[], None] = lambda: None,
) -> Session:
    """A session with the plan's settings. Logs go to the checkpoint only for the run that holds its lease; a preview passes no `logs`."""
    dismiss()
    keeps_state = any(query.stateful for query in queries)
    options = session_options(topology, queries, keeps_state, log_folder(topology) if logs else None)
    return open_with(replace(options, log=JvmLog(log_format, topology.name)), progress, preload)


def open_shared(
    topologies: Sequence[Topology],
    first: Topology,
    progress: Callable[[str], None],
    preload: Callable[[], None],
    log_format: Format = "text",
) -> Session:
    """A session for several plans with the same Spark settings; the JVM logs into the checkpoint of the first."""
    own = {"state_partitions": None}  # each session has its own value
    topologies = [replace(topology, settings=topology.settings.model_copy(update=own)) for topology in topologies]
    plans = [(topology, cut(topology)) for topology in topologies]
    keeps_state = any(query.stateful for _, queries in plans for query in queries)
    wanted = [session_options(topology, queries, keeps_state, log_folder(first)) for topology, queries in plans]
    options = replace(
        wanted[0],
        app_name=first.name,
        log=JvmLog(log_format, ",".join(topology.name for topology in topologies)),
        profile="long" if any(each.profile == "long" for each in wanted) else wanted[0].profile,
        extras=tuple(sorted({extra for each in wanted for extra in each.extras})),
    )
    session = open_with(options, progress, preload)
    from pyspark.java_gateway import ensure_callback_server_started

    ensure_callback_server_started(session.spark.sparkContext._gateway)  # type: ignore[no-untyped-call]  # once, before threads race for it
    return session


def session_options(topology: Topology, queries: tuple[QueryPlan, ...], keeps_state: bool, log_dir: Path | None) -> SessionOptions:
    settings = topology.settings
    conf = {key: value.reveal() if isinstance(value, Secret) else value for key, value in settings.spark.items()}
    conf |= _redaction_conf(settings.spark)
    if settings.state_partitions:
        conf.setdefault("spark.sql.shuffle.partitions", str(settings.state_partitions))
    if any(query.maintained for query in queries):
        conf = {**INCREMENTAL, **conf}
    if keeps_state and is_local_master(settings.master):
        conf = {**local_files.CHECKSUMMED, **conf}
    return SessionOptions(
        app_name=topology.name,
        master=settings.master,
        conf=conf,
        profile=profile_of(topology, queries),
        extras=tuple(sorted({extra for node in topology.nodes for extra in node.component.extras()})),
        log_dir=log_dir,
        driver_memory=f"{settings.driver_memory.bytes >> 20}m" if settings.driver_memory else None,
    )


def _redaction_conf(spark: Mapping[str, str | Secret]) -> dict[str, str]:
    """Adds the names of settings that are secrets to Spark's redaction pattern. Hadoop shows its settings without the prefix."""
    names = [re.escape(name.removeprefix("spark.hadoop.")) for name, value in spark.items() if isinstance(value, Secret)]
    given = spark.get("spark.redaction.regex", "(?i)secret|password|token|access[.]?key")
    return {"spark.redaction.regex": "|".join([str(given), *names])} if names else {}


def open_with(options: SessionOptions, progress: Callable[[str], None], preload: Callable[[], None] = lambda: None) -> Session:
    """`preload` imports what needs PySpark while the JVM starts."""
    starting = begin(options, progress=progress)
    try:
        preload()
        session = starting.finish()
        if options.conf.get("spark.hadoop.fs.file.impl") in local_files.CHECKSUMMED.values():
            local_files.write_no_checksum_files(session.spark)
        return session
    except BaseException:
        starting.abandon()
        raise


def profile_of(topology: Topology, queries: tuple[QueryPlan, ...]) -> Profile:
    """`auto`: a quick start for small bounded work, throughput for everything else."""
    if topology.settings.profile != "auto":
        return topology.settings.profile
    sources = [node.component for query in queries for node in query.sources]
    return "short" if all(source.bounded and source.small for source in sources) else "long"
