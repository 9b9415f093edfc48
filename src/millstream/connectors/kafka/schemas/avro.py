"""Avro messages become columns by Spark's own reader: one branch per writer's schema, all of them into one reader's schema.

A message begins with a zero byte and the id of its schema. Avro's own resolution leads from the writer's schema to the reader's: fields
that were added, removed, promoted or made optional. Where bad messages are kept apart, Spark answers one with a row of nulls, which good
messages may be too; so the reader's schema has one more field then, with a default, that no writer has. It is null in a bad row alone.
Where they stop the query, Spark stops at once, and the place is found afterwards: that is faster.

An id that nobody has seen stops the query with a mark. The driver fetches the schema and starts again (`Source.learns`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.connectors.kafka.reading.parsing import Part
from millstream.formats.avro import AvroSchema

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

WHOLE = "_millstream_whole"
_MARK = "millstream-schema-id"
_MARKED = re.compile(rf"{_MARK}: (\S+): (value|key) (\d+)")
_HEADER = 5
"""The zero byte and four bytes of the id."""


@dataclass(frozen=True, slots=True)
class AvroPart(Part):
    """A value or a key in Avro."""

    node: str = ""
    reader: AvroSchema = AvroSchema("null", {})
    writers: Mapping[int, str] = field(default_factory=dict)
    """Id → schema, of those that resolve."""
    refused: Mapping[int, str] = field(default_factory=dict)
    """Id → why messages of it are bad."""

    def parsed(self) -> Column:
        from pyspark.sql import functions as F
        from pyspark.sql.avro.functions import from_avro

        reader = self.reader if self.strict else marked(self.reader)
        options = {"avroSchema": reader.text(), "mode": "FAILFAST" if self.strict else "PERMISSIVE"}
        body = F.expr(f"substring({self.what}, {_HEADER + 1})")
        found = F.when(F.col(self.what).isNull(), F.lit(None))
        for id_, writer in sorted(self.writers.items(), reverse=True):
            found = found.when(_is(self._header(), id_), from_avro(body, writer, options))
        for id_ in self.refused:
            found = found.when(_is(self._header(), id_), F.lit(None))
        unseen = F.raise_error(F.concat(F.lit(f"{_MARK}: {self.node}: {self.what} "), self._id()))
        return found.when(self._headed(), unseen)

    def columns(self) -> list[Column]:
        from pyspark.sql import functions as F
        from pyspark.sql.pandas.types import from_arrow_type

        if self.reader.record is None:
            return [F.col(self.column)]
        row = F.when(self.operation() == "d", self._body("before")).otherwise(self._body("after")) if self.envelope else F.col(self.column)
        held = (row_type(self.reader) if self.envelope else self.reader).columns()
        return [
            row.getField(each.name)
            if held.field(each.name).type.equals(each.type)
            else row.getField(each.name).cast(from_arrow_type(each.type, prefer_timestamp_ntz=True))
            for each in self.schema
        ]

    def error(self) -> Column:
        from pyspark.sql import functions as F

        parsed = F.col(self.column)
        whole = parsed if self.strict or self.reader.record is None else parsed.getField(WHOLE)
        # good messages, which most are, are judged by one look
        found = F.when(whole.isNotNull(), F.lit(None).cast("string")).when(F.col(self.what).isNull(), f"the message has no {self.what}")
        found = found.when(~self._headed(), f"the {self.what} does not begin with a zero byte and the id of a schema")
        for id_, reason in self.refused.items():
            found = found.when(_is(self._header(), id_), reason)
        found = found.otherwise(F.concat(F.lit(f"the {self.what} cannot be decoded with its schema, "), self._id()))
        return F.coalesce(found, self._envelope_error(F.when(F.lit(False), ""))) if self.envelope else found

    def _body(self, name: str) -> Column:
        from pyspark.sql import functions as F

        return F.col(self.column).getField(name)

    def _header(self) -> Column:
        from pyspark.sql import functions as F

        return F.expr(f"substring({self.what}, 1, {_HEADER})")

    def _headed(self) -> Column:
        from pyspark.sql import functions as F

        return F.expr(f"octet_length({self.what}) >= {_HEADER} AND substring({self.what}, 1, 1) = X'00'")

    def _id(self) -> Column:
        from pyspark.sql import functions as F

        return F.expr(f"conv(hex(substring({self.what}, 2, 4)), 16, 10)")


def marked(reader: AvroSchema) -> AvroSchema:
    """The reader's schema with the field that tells bad rows apart."""
    record = reader.record
    if record is None:
        return reader
    own = {**record, "fields": [*record["fields"], {"name": WHOLE, "type": "boolean", "default": True}]}
    return AvroSchema(reader.type, {**reader.names, str(reader.type): own})


def enveloped(reader: AvroSchema) -> AvroSchema:
    """Debezium's envelope without what nobody reads; ValueError when it is none."""
    record, needed = reader.record or {"fields": []}, ("before", "after", "op")
    kept = [each for each in record["fields"] if each["name"] in needed]
    if len(kept) != len(needed):
        raise ValueError("the schema is no Debezium envelope: it lacks `before`, `after` or `op`")
    return AvroSchema(reader.type, {**reader.names, str(reader.type): {**record, "fields": kept}})


def row_type(reader: AvroSchema) -> AvroSchema:
    """What an envelope is about."""
    kind: Any = reader.field("after")
    rows = [branch for branch in (kind if isinstance(kind, list) else [kind]) if branch != "null"]
    return AvroSchema(rows[0], reader.names)


def refusals(spark: SparkSession, reader: AvroSchema, writers: Mapping[int, str], subject: str) -> dict[int, str]:
    """Id → the difference, for writers whose messages Avro cannot turn into the reader's rows."""
    avro: Any = spark._jvm.org.apache.avro  # type: ignore[union-attr]  # a classic session has one
    target, found = avro.Schema.Parser().parse(marked(reader).text()), {}
    for id_, text in writers.items():
        result = avro.SchemaCompatibility.checkReaderWriterCompatibility(target, avro.Schema.Parser().parse(text)).getResult()
        # the names of records need not agree: the reader goes by their fields
        told = [each for each in result.getIncompatibilities() if str(each.getType()) != "NAME_MISMATCH"]
        if told:
            reasons = "; ".join(f"{each.getLocation() or '/'}: {each.getMessage()}" for each in told[:3])
            found[id_] = f"schema {id_} cannot be read with the pinned one of subject `{subject}` ({reasons})"
    return found


def unseen(text: str, node: str) -> tuple[str, int] | None:
    """Which part of a source's messages has met a new id, as a failure's text says it."""
    found = next((each for each in _MARKED.finditer(text) if each[1] == node), None)
    return (found[2], int(found[3])) if found else None


def _is(header: Column, id_: int) -> Column:
    from pyspark.sql import functions as F

    return header.eqNullSafe(F.lit(bytearray(b"\x00" + id_.to_bytes(4, "big"))))
