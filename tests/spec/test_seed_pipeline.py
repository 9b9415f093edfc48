"""The Kafka → SQL → Postgres pipeline that the product was born from: all that it lacks is where the servers are."""

from tests.seed import SEED

from millstream.spec.loader import loads


def test_only_the_servers_are_missing() -> None:
    loaded = loads(SEED)
    assert [(finding.code, finding.message) for finding in loaded.diagnostics] == [
        ("MS007", "source `raw.transactions`: a Kafka node needs `bootstrap_servers`"),
        ("MS007", "source `raw.transactions`: `format: avro` needs `schema_registry`"),
        ("MS007", "sink `pg.large_transactions`: a Postgres node needs `database`"),
    ]
