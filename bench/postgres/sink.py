"""Two million rows of six columns into Postgres: appended against Spark's JDBC writer (as it comes, and with large batches that the driver
rewrites), upserted against psycopg's executemany.

All of them read the same Parquet files and write to one server on the same cores, in turns, in one session. CPU is that of the client and
of the server together; the best of the turns counts. Half of the upserted keys are there before. `executemany` gets a tenth of the rows.
"""

from __future__ import annotations

import json
from typing import Any

from bench.figures import Figure, cost_of, python

ROWS, TURNS = 2_000_000, 2


def measure() -> list[Figure]:
    runs: dict[str, list[dict[str, Any]]] = json.loads(cost_of(python("postgres_sink.py", str(ROWS), str(TURNS))).output.splitlines()[-1])
    best = {name: min(taken, key=lambda run: float(run["wall"])) for name, taken in runs.items()}
    rate = {name: run["rows"] / run["wall"] for name, run in best.items()}
    price = {name: (run["client"] + run["server"]) / run["rows"] * 1e6 for name, run in best.items()}
    figures = []
    for name, run in best.items():
        note = f"{run['client']:.1f} s CPU of the client, {run['server']:.1f} s of the server, for {run['rows'] / 1e6:.1f} M rows"
        figures.append(Figure(name, rate[name], "rows/s", note=note))
    return [
        *figures,
        Figure("append, rows per CPU, ours / JDBC", price["JDBC, append"] / price["ours, append"], "", bar=3, floor=True),
        Figure("append, rows per CPU, ours / JDBC with care", price["JDBC with care, append"] / price["ours, append"], ""),
        Figure("append, rows/s, ours / JDBC", rate["ours, append"] / rate["JDBC, append"], ""),
        Figure("append, rows/s, ours / JDBC with care", rate["ours, append"] / rate["JDBC with care, append"], ""),
        Figure("upsert, rows/s, ours / executemany", rate["ours, upsert"] / rate["executemany, upsert"], "", bar=5, floor=True),
        Figure("upsert, rows per CPU, ours / executemany", price["executemany, upsert"] / price["ours, upsert"], ""),
    ]
