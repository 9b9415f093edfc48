"""A running total over ever more keys: what an epoch takes, and how much memory and disk the state needs. Prints one point per epoch."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from millstream.engine.engine import SparkEngine
from millstream.observe.facts import Snapshot
from millstream.plan.run_options import RunOptions
from millstream.spec.loader import loads

ROWS = 500_000


def main(keys: int) -> None:
    epochs = 2 * keys // ROWS
    points: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        topology = loads(
            f"sources: {{g: {{type: generator, rows: {ROWS * epochs}, rows_per_epoch: {ROWS}, fields: {{id: {{type: sequence}}}}}}}}\n"
            f'transforms: {{rows: {{type: sql, sql: "SELECT id % {keys} AS k, id AS v FROM g"}},\n'
            "  total: {type: aggregate, from: rows, key_by: [k], aggregate: {total: sum(v), n: count(*)}}}\n"
            f"sinks: {{out: {{type: blackhole, from: total}}}}\nsettings: {{checkpoint: {folder}/ck, profile: long, master: 'local[2]'}}"
        ).require()

        def watch(snapshot: Snapshot) -> None:
            query, node = snapshot.queries.get("total"), snapshot.nodes.get("total")
            if query is None or query.last_epoch is None or node is None or node.state is None:
                return
            if not points or points[-1]["epoch"] < query.last_epoch:
                size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
                memory = {"state_mb": node.state.memory_bytes / 1e6, "process_mb": _resident()}
                disk = {"checkpoint_mb": size / 1e6}
                points.append({"epoch": query.last_epoch, "keys": node.state.rows, "seconds": query.last_seconds, **memory, **disk})

        SparkEngine().run(topology, RunOptions(watch=watch))
    print(json.dumps(points))


def _resident() -> float:
    """Megabytes of this process and its JVM."""
    pids = [str(os.getpid()), *(Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split())]
    pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids if Path(f"/proc/{pid}/statm").exists()]
    return sum(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    main(int(sys.argv[1]))
