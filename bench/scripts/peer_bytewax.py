"""The same windows with Bytewax: a sum per key and ten seconds of event time. Run with `python -m bytewax.run peer_bytewax:flow`."""

import json
import operator
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import bytewax.operators as op
from bytewax.connectors.files import DirSource, FileSink
from bytewax.dataflow import Dataflow
from bytewax.operators import windowing
from bytewax.operators.windowing import EventClock, TumblingWindower

FOLDER = Path(os.environ["BENCH_FOLDER"])
START = datetime(2024, 1, 1, tzinfo=UTC)

flow = Dataflow("sums")
lines = op.input("read", flow, DirSource(FOLDER / "in", batch_size=10_000))
rows = op.map("parse", lines, json.loads)
keyed = op.key_on("key", rows, lambda row: str(row["key"]))
clock = EventClock(lambda row: datetime.fromtimestamp(row["at"] / 1000, UTC), wait_for_system_duration=timedelta(days=1))
windower = TumblingWindower(length=timedelta(seconds=10), align_to=START)
summed = windowing.fold_window("sum", keyed, clock, windower, lambda: 0, lambda total, row: total + row["value"], operator.add)
texts = op.map("text", summed.down, lambda item: (item[0], json.dumps([item[0], *item[1]])))
op.output("write", texts, FileSink(FOLDER / "bytewax.out"))
