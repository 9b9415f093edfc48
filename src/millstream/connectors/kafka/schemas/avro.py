"""Decodes Avro messages with Spark's own reader: one branch per writer's schema, all into one reader's schema.

A message begins with a zero byte and the id of its schema. Avro's schema resolution converts the writer's schema to the reader's: fields
that were added, removed, promoted or made optional.
Where rejects are isolated, Spark returns a row of nulls for an invalid message, but a valid message may be all nulls too. So the reader's
schema has one more field then, with a default, that no writer has: it is null only in an invalid row. Where invalid messages stop the
query, Spark stops at once, and the position is found afterwards: that is faster.
An unknown id stops the query with a mark. The driver fetches the schema and restarts (`LearnsFromFailures`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.connectors.kafka.parts import MessagePart
from millstream.formats.avro import AvroSchema
from millstream.worker import marks

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

WHOLE = "_millstream_whole"
_MARKED = re.compile(rf"{marks.UNKNOWN_SCHEMA}: (\S+): (value|key) (\d+)")
_HEADER = 5
"""The zero byte and four bytes of the id."""


@dataclass(frozen=True, slots=True)
class AvroPart(MessagePart):
    """A value or a key in Avro."""

    node: str = ""
    reader: AvroSchema = AvroSchema("null", {})
    writers: Mapping[int, str] = field(default_factory=dict)
    """Id → schema, of those that resolve."""
    refused: Mapping[int, str] = field(default_factory=dict)
    """Id → why its messages are invalid."""

    def parse(self) -> Column:
        from pyspark.sql import functions as F
        from pyspark.sql.avro.functions import from_avro

        reader = self.reader if self.strict else with_marker_field(self.reader)
        options = {"avroSchema": reader.text(), "mode": "FAILFAST" if self.strict else "PERMISSIVE"}
        body = F.expr(f"substring({self.what}, {_HEADER + 1})")
        found = F.when(F.col(self.what).isNull(), F.lit(None))
        for id_, writer in sorted(self.writers.items(), reverse=True):
            found = found.when(_is(self._header(), id_), from_avro(body, writer, options))
        for id_ in self.refused:
            found = found.when(_is(self._header(), id_), F.lit(None))
        unseen = F.raise_error(F.concat(F.lit(f"{marks.UNKNOWN_SCHEMA}: {self.node}: {self.what} "), self._id()))
        return found.when(self._has_header(), unseen)

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
        # valid messages, the most common case, need only one test
        found = F.when(whole.isNotNull(), F.lit(None).cast("string")).when(F.col(self.what).isNull(), f"the message has no {self.what}")
        found = found.when(~self._has_header(), f"the {self.what} does not begin with a zero byte and the id of a schema")
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

    def _has_header(self) -> Column:
        from pyspark.sql import functions as F

        return F.expr(f"octet_length({self.what}) >= {_HEADER} AND substring({self.what}, 1, 1) = X'00'")

    def _id(self) -> Column:
        from pyspark.sql import functions as F

        return F.expr(f"conv(hex(substring({self.what}, 2, 4)), 16, 10)")


def with_marker_field(reader: AvroSchema) -> AvroSchema:
    """The reader's schema with the field that marks valid rows."""
    record = reader.record
    if record is None:
        return reader
    own = {**record, "fields": [*record["fields"], {"name": WHOLE, "type": "boolean", "default": True}]}
    return AvroSchema(reader.type, {**reader.names, str(reader.type): own})


def trim_envelope(reader: AvroSchema) -> AvroSchema:
    """Debezium's envelope with only the fields that are read; ValueError when it is not one."""
    record, needed = reader.record or {"fields": []}, ("before", "after", "op")
    kept = [each for each in record["fields"] if each["name"] in needed]
    if len(kept) != len(needed):
        raise ValueError("the schema is not a Debezium envelope: it lacks `before`, `after` or `op`")
    return AvroSchema(reader.type, {**reader.names, str(reader.type): {**record, "fields": kept}})


def row_type(reader: AvroSchema) -> AvroSchema:
    """The row type in an envelope."""
    kind: Any = reader.field("after")
    rows = [branch for branch in (kind if isinstance(kind, list) else [kind]) if branch != "null"]
    return AvroSchema(rows[0], reader.names)


def refusals(spark: SparkSession, reader: AvroSchema, writers: Mapping[int, str], subject: str) -> dict[int, str]:
    """Id → the difference, for writers whose messages Avro cannot convert to the reader's rows."""
    avro: Any = spark._jvm.org.apache.avro  # type: ignore[union-attr]  # a classic session has one
    target, found = avro.Schema.Parser().parse(with_marker_field(reader).text()), {}
    for id_, text in writers.items():
        result = avro.SchemaCompatibility.checkReaderWriterCompatibility(target, avro.Schema.Parser().parse(text)).getResult()
        # the names of records may differ: the reader uses their fields
        told = [each for each in result.getIncompatibilities() if str(each.getType()) != "NAME_MISMATCH"]
        if told:
            reasons = "; ".join(f"{each.getLocation() or '/'}: {each.getMessage()}" for each in told[:3])
            found[id_] = f"schema {id_} cannot be read with the pinned one of subject `{subject}` ({reasons})"
    return found


def unseen(text: str, node: str) -> tuple[str, int] | None:
    """The part and the new id in a failure's text."""
    found = next((each for each in _MARKED.finditer(text) if each[1] == node), None)
    return (found[2], int(found[3])) if found else None


def _is(header: Column, id_: int) -> Column:
    from pyspark.sql import functions as F

    return header.eqNullSafe(F.lit(bytearray(b"\x00" + id_.to_bytes(4, "big"))))
