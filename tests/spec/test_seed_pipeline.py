"""The Kafka → SQL → Postgres pipeline that the product was born from: all that it lacks is where the servers are."""

from millstream.spec.loader import loads

SEED = """
sources:
  raw.transactions:
    type: kafka
    topic: raw.event.transaction
transforms:
  large_transactions:
    type: sql
    primary_key: id
    sql: |
      SELECT *
      FROM raw.transactions
      WHERE amount > 1000
sinks:
  pg.large_transactions:
    from: large_transactions
    type: postgres
    schema: public
    table: large_transactions
    primary_key: id
"""


def test_only_the_servers_are_missing() -> None:
    loaded = loads(SEED)
    assert [(finding.code, finding.message) for finding in loaded.diagnostics] == [
        ("MS007", "source `raw.transactions`: a Kafka node needs `bootstrap_servers`"),
        ("MS007", "source `raw.transactions`: `format: avro` needs `schema_registry`"),
        ("MS007", "sink `pg.large_transactions`: a Postgres node needs `database`"),
    ]
