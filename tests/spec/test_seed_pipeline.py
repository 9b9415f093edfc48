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


def test_only_the_unknown_connectors_are_reported() -> None:
    loaded = loads(SEED)
    assert [(finding.code, finding.message) for finding in loaded.diagnostics] == [
        ("MS010", "unknown source type `kafka`"),
        ("MS010", "unknown sink type `postgres`"),
    ]
