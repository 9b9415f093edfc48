"""Content-based routing: each order goes to the first branch that wants it, the rest to the default branch; one epoch for all."""

from millstream import GeneratorSource, MemorySink, StreamEnvironment, col


def main() -> None:
    env = StreamEnvironment("routing")
    orders = env.from_source(
        GeneratorSource.model_validate(
            {
                "rows": 1000,
                "fields": {
                    "id": {"type": "sequence"},
                    "country": {"type": "choice", "values": ["DE", "FR", "US"]},
                    "amount": {"type": "uniform", "min": 1.0, "max": 500.0},
                },
            }
        ),
        "orders",
    )
    routes = orders.split(large=col("amount") > 400, europe=col("country").is_in("DE", "FR"))
    sinks = {name: MemorySink() for name in routes}
    flows = [stream.to(sinks[name], name) for name, stream in routes.items()]
    report = flows[-1].execute()
    for name, sink in sinks.items():
        print(f"{name:8} {len(sink.rows())} rows")
    print(f"{report.rows_read} rows read once, {report.rows_written} written")


if __name__ == "__main__":
    main()
