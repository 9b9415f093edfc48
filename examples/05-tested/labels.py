"""A label for slow clicks."""

import pyarrow as pa
import pyarrow.compute as pc


def label(batch: pa.RecordBatch) -> pa.RecordBatch:
    """`very slow` beyond half a second."""
    return batch.append_column("label", pc.if_else(pc.greater(batch["ms"], 500.0), "very slow", "slow"))
