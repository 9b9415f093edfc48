"""The Python front door: the same plan as YAML would give, typed, with expressions and a function on Arrow batches."""

import pyarrow as pa
import pyarrow.compute as pc

from millstream import FileSink, PrintSink, StreamEnvironment, col, func

ORDERS = [
    {"id": 1, "user": "ann", "amount": 1200.5},
    {"id": 2, "user": "bob", "amount": 80.0},
    {"id": 3, "user": "bob", "amount": 4100.0},
]


def with_tax(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Whole columns at once."""
    return batch.append_column("gross", pc.multiply(batch["amount"], 1.19))


def main() -> None:
    env = StreamEnvironment("totals")
    orders = env.from_rows(ORDERS).with_columns(user=func.upper(col("user")))
    taxed = orders.filter(col("amount") > 100).map_batches(
        with_tax, schema={"id": "int64", "user": "string", "amount": "float64", "gross": "float64"}
    )
    flow = taxed.tee(
        lambda stream: stream.to(FileSink(path="out/totals", format="parquet")),
        lambda stream: stream.to(PrintSink()),
    )
    report = flow.execute()
    print(f"{report.rows_written} rows in {report.epochs} epoch(s)")


if __name__ == "__main__":
    main()
