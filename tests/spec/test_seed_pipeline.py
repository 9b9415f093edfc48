"""The Kafka → SQL → Postgres pipeline that the product was born from: all that is wrong with it is what later versions bring."""

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


def test_only_what_is_not_there_yet_is_reported() -> None:
    loaded = loads(SEED)
    assert [(finding.code, finding.message) for finding in loaded.diagnostics] == [
        ("MS010", "unknown sink type `postgres`"),
        ("MS007", "source `raw.transactions`: a Kafka node needs `bootstrap_servers`"),
        ("MS007", "source `raw.transactions`: `format: avro` needs `schema_registry`"),
    ]
