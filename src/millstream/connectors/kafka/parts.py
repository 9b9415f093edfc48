"""One part of a message, its value or its key: Spark's parsers, the resulting columns, and a sentence when it does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from millstream.plan.expressions import quote_column

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import StructType

Format = Literal["avro", "json", "json_schema", "protobuf", "csv", "string", "bytes"]
RAW = "_millstream_raw"
"""The column for text that Spark's parsers cannot read."""


@dataclass(frozen=True, slots=True)
class MessagePart:
    """The value of a message, or its key."""

    format: Format
    schema: pa.Schema
    options: Mapping[str, str]
    what: Literal["value", "key"]
    strict: bool = False
    """Whether Spark's parser stops at invalid text: faster than keeping it in a column, but the position must be found afterwards."""
    envelope: bool = False
    """Whether the columns are inside a Debezium envelope, which contains the operation."""

    @property
    def column(self) -> str:
        """The column of the parsed part."""
        return f"_millstream_{self.what}"

    def parse(self) -> Column:
        from pyspark.sql import functions as F
        from pyspark.sql.types import StringType

        text = self.text()
        if self.format in {"string", "bytes"}:
            return F.col(self.what) if self.format == "bytes" else text
        schema = _envelope_type(self._struct()) if self.envelope else self._struct()
        options = {**self.options, "mode": "FAILFAST"}
        if not self.strict:
            schema, options = schema.add(RAW, StringType()), {**self.options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": RAW}
        return F.from_json(text, schema, options) if self.format == "json" else F.from_csv(text, _ddl(schema), options)

    def text(self) -> Column:
        """The parser's input."""
        from pyspark.sql import functions as F

        return F.col(self.what).cast("string")

    def columns(self) -> list[Column]:
        """One per field of the schema."""
        from pyspark.sql import functions as F

        if self.format == "bytes":
            return [F.col(self.column)]
        if self.format == "string":
            return [_try_cast(text, field) for text, field in zip(self._texts(), self.schema, strict=True)]
        row = F.when(self.operation() == "d", self._body("before")).otherwise(self._body("after")) if self.envelope else F.col(self.column)
        return [row.getField(field.name) for field in self.schema]

    def operation(self) -> Column:
        """The operation in an envelope: r, c, u, d."""
        return self._body("op")

    def error(self) -> Column:
        """Why the part is invalid; null when it is valid."""
        from pyspark.sql import functions as F

        if self.format == "bytes":
            return F.lit(None).cast("string")
        if self.format == "string":
            return self._text_error()
        raw, parsed = F.col(self.what), F.col(self.column)
        kind = "JSON object" if self.format == "json" else "CSV row"
        found = F.when(raw.isNull(), f"the message has no {self.what}").when(parsed.isNull(), f"the {self.what} contains no {kind}")
        if self.format == "csv":  # the two modes of Spark's parser treat an empty text differently
            found = found.when(F.octet_length(raw) == 0, f"the {self.what} contains no {kind}")
        if not self.strict:
            found = found.when(parsed.getField(RAW).isNotNull(), f"the {self.what} is not a {kind} that fits the schema")
        return self._envelope_error(found) if self.envelope else found

    def _text_error(self) -> Column:
        from pyspark.sql import functions as F

        given = F.col(self.what).isNotNull()
        found = F.when(given & ~F.is_valid_utf8(self.column), f"the {self.what} is not UTF-8 text")
        for text, field in zip(self._texts(), self.schema, strict=True):
            found = found.when(given & _try_cast(text, field).isNull(), f"the {self.what} does not fit `{field.name}` as {field.type}")
        return found

    def _envelope_error(self, found: Column) -> Column:
        from pyspark.sql import functions as F

        op = self.operation()
        found = found.when(op.isNull(), "the value is not a Debezium envelope: it has no `op`")
        found = found.when(~op.isin("r", "c", "u", "d"), F.concat(F.lit("the operation `"), op, F.lit("` is not one of r, c, u and d")))
        image = F.when(op == "d", self._body("before")).otherwise(self._body("after"))
        return found.when(image.isNull(), "the envelope does not contain the row: `before` for a delete, `after` for others")

    def _body(self, name: str) -> Column:
        """A field of the envelope, which may be with its schema or alone."""
        from pyspark.sql import functions as F

        parsed = F.col(self.column)
        return F.coalesce(parsed.getField("payload").getField(name), parsed.getField(name))

    def _texts(self) -> list[Column]:
        """A text, or its pieces between colons if there are several columns."""
        from pyspark.sql import functions as F

        if len(self.schema) == 1:
            return [F.col(self.column)]
        pieces = F.split(self.column, ":", len(self.schema))
        return [F.try_element_at(pieces, F.lit(index + 1)) for index in range(len(self.schema))]

    def _struct(self) -> StructType:
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(self.schema, prefer_timestamp_ntz=True)


def _envelope_type(row: StructType) -> StructType:
    from pyspark.sql.types import StringType, StructType

    body = StructType().add("before", row).add("after", row).add("op", StringType())
    return StructType([*body.fields]).add("payload", body)


def _ddl(schema: StructType) -> str:
    return ", ".join(f"{quote_column(field.name)} {field.dataType.simpleString()}" for field in schema)


def _try_cast(text: Column, field: pa.Field) -> Column:
    from pyspark.sql.pandas.types import from_arrow_type

    return text.try_cast(from_arrow_type(field.type, prefer_timestamp_ntz=True))
