"""The state of one node, found by the node's name: its query, its Spark operators, and their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from millstream.checkpoint.incremental import IncrementalState
from millstream.checkpoint.layout import Checkpoint
from millstream.clients.storage import is_local, open_storage
from millstream.engine.decisions import recall
from millstream.engine.offline.access import CheckpointPlace, open_checkpoint
from millstream.errors import Diagnostic, RunError, UsageError, nearest
from millstream.plan.components import ReadsState
from millstream.plan.cutting import QueryPlan, cut
from millstream.plan.run_options import checkpoint_of
from millstream.plan.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.checkpoint.state_reader import StateTable


def view(
    topology: Topology, node: str, key: tuple[str, ...], limit: int, starting: Callable[[], None]
) -> tuple[list[dict[str, Any]], bool]:
    """The rows of a node's state, and whether there are more than `limit`. `starting` is called before Spark starts."""
    url = checkpoint_of(topology)
    topology = recall(topology, Checkpoint(open_storage(url), topology.name)) if is_local(url) else topology
    plan = _plan(topology, node)
    with open_checkpoint(CheckpointPlace.of(topology)) as found:  # refused before Spark starts, which takes seconds
        if found.checkpoint.query(plan.name).last_committed() < 0:
            raise RunError(Diagnostic("MS058", f"`{node}` keeps no state yet: query `{plan.name}` has committed no epoch"))
    starting()
    with open_checkpoint(CheckpointPlace.of(topology), spark=True) as found:
        from millstream.checkpoint.state_reader import operators_of, parts, rows

        assert found.spark is not None
        query = found.checkpoint.query(plan.name)
        if plan.maintained:
            kept = IncrementalState(found.checkpoint.incremental(plan.name))
            chosen = list(islice(_stored_rows(found.spark, kept, query.last_committed(), key), limit + 1))
            return chosen[:limit], len(chosen) > limit
        own = _decoded_state(topology, node, found.spark, query.url)
        if own is not None:
            chosen = [dict(row) for row in islice((row for row in own if _has_key(row["key"], key)), limit + 1)]
            return chosen[:limit], len(chosen) > limit
        tables = parts(found.spark, query, operators_of(node, plan, query))
        shown = [_with_part_name(part, row, len(tables) > 1) for part in tables for row in rows(part, key, limit + 1)]
    return shown[:limit], len(shown) > limit


def _plan(topology: Topology, node: str) -> QueryPlan:
    stateful = [known.name for known in topology.nodes if known.stateful]
    if node not in topology.by_name:
        near = nearest(node, stateful or topology.by_name)
        raise UsageError(Diagnostic("MS058", f"the pipeline has no node `{node}`", help=near))
    if node not in stateful:
        help_ = nearest("", stateful) or "this pipeline keeps no state"
        raise UsageError(Diagnostic("MS058", f"`{node}` keeps no state", topology.node(node).span, help=help_))
    found = [plan for plan in cut(topology) if any(step.name == node for step in plan.above)]
    if not found:
        raise UsageError(Diagnostic("MS058", f"nothing reads `{node}`, so it keeps no state", topology.node(node).span))
    return next((plan for plan in found if plan.name == node), found[0])


def _stored_rows(spark: SparkSession, state: IncrementalState, epoch: int, key: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """The rows that the operators of an incremental query keep. `--key COLUMN=VALUE` chooses among them."""
    from pyspark.sql import functions as F

    entries = state.path_to(epoch)
    frame = spark.read.parquet(*[f"{state.storage.url}/{entry.path}" for entry in entries])
    for place, part in enumerate(entries[0].parts[:-1]):
        if not part.name.strip():
            continue
        rows = frame.where(f"_part = {place}").select(f"_p{place}.*").toDF(*part.columns)
        shown = [name for name in part.columns if name not in {"_w", "_h"}]
        named = dict(zip(part.columns, part.names or part.columns, strict=True))
        summed = rows.groupBy(*shown).agg(F.expr("sum(_w) AS rows")).where("rows <> 0").orderBy(*shown)
        for row in summed.toLocalIterator():
            values = row.asDict(recursive=True)
            found = {named[name]: values[name] for name in shown}
            if _has_key(found, key):
                yield {"operator": part.operator, "store": part.name, "key": found, "rows": values["rows"]}


def _decoded_state(topology: Topology, node: str, spark: SparkSession, url: str) -> Iterable[Mapping[str, Any]] | None:
    component = topology.node(node).component
    return component.read_state(spark, url, node) if isinstance(component, ReadsState) else None


def _has_key(found: Mapping[str, Any], wanted: tuple[str, ...]) -> bool:
    """`VALUE` matches by the order of the key's columns, `COLUMN=VALUE` by name."""
    names = list(found)
    for position, text in enumerate(wanted):
        name, equals, value = text.partition("=")
        if not equals or name not in found:
            name, value = (names[position] if position < len(names) else ""), text
        if str(found.get(name)) != value:
            return False
    return True


def _with_part_name(part: StateTable, row: dict[str, Any], several: bool) -> dict[str, Any]:
    """A row with the name of its side, variable or operator, where there are several."""
    if part.label:
        return {"side" if part.operator.joins else "variable": part.label, **row}
    return {"operator": part.operator.id, **row} if several else row
