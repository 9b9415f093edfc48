"""The Python step of the demo: whole Arrow batches in, whole Arrow batches out."""

import pyarrow as pa
import pyarrow.compute as pc


def score(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Add the gross amount and say how much attention an order deserves."""
    gross = pc.round(pc.multiply(batch["amount"], pc.add(batch["vat_rate"], 1.0)), 2)
    risk = pc.if_else(pc.greater(gross, 1150.0), "review", "ok")
    return pa.RecordBatch.from_pydict(
        {"id": batch["id"], "user": batch["user"], "country": batch["country"], "gross": gross, "risk": risk, "at": batch["at"]}
    )
