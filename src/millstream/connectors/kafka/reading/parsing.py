"""One part of a message, its value or its key: Spark's own parsers, the columns that come out, and a sentence when it does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import StructType

Format = Literal["avro", "json", "json_schema", "protobuf", "csv", "string", "bytes"]
RAW = "_millstream_raw"
"""Where Spark's parsers put what they cannot read."""


@dataclass(frozen=True, slots=True)
class Part:
    """The value of a message, or its key."""

    format: Format
    schema: pa.Schema
    options: Mapping[str, str]
    what: Literal["value", "key"]
    strict: bool = False
    """Whether Spark's parser stops at what it cannot read: faster than keeping it in a column, and the place has to be found afterwards."""
    envelope: bool = False
    """Whether the columns stand inside a Debezium envelope, which says what happened to them."""

    @property
    def column(self) -> str:
        """Where the parsed part stands."""
        return f"_millstream_{self.what}"

    def parsed(self) -> Column:
        from pyspark.sql import functions as F
        from pyspark.sql.types import StringType

        text = self.text()
        if self.format in {"string", "bytes"}:
            return F.col(self.what) if self.format == "bytes" else text
        schema = _enveloped(self._struct()) if self.envelope else self._struct()
        options = {**self.options, "mode": "FAILFAST"}
        if not self.strict:
            schema, options = schema.add(RAW, StringType()), {**self.options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": RAW}
        return F.from_json(text, schema, options) if self.format == "json" else F.from_csv(text, _ddl(schema), options)

    def text(self) -> Column:
        """What the parser reads."""
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
        """What an envelope says has happened: r, c, u, d."""
        return self._body("op")

    def error(self) -> Column:
        """Why the part is bad; null when it is not."""
        from pyspark.sql import functions as F

        if self.format == "bytes":
            return F.lit(None).cast("string")
        if self.format == "string":
            return self._text_error()
        raw, parsed = F.col(self.what), F.col(self.column)
        kind = "JSON object" if self.format == "json" else "CSV row"
        found = F.when(raw.isNull(), f"the message has no {self.what}").when(parsed.isNull(), f"the {self.what} holds no {kind}")
        if self.format == "csv":  # of no text at all the two modes of Spark's parser have different opinions
            found = found.when(F.octet_length(raw) == 0, f"the {self.what} holds no {kind}")
        if not self.strict:
            found = found.when(parsed.getField(RAW).isNotNull(), f"the {self.what} is no {kind} that fits the schema")
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
        found = found.when(op.isNull(), "the value is no Debezium envelope: it has no `op`")
        found = found.when(~op.isin("r", "c", "u", "d"), F.concat(F.lit("the operation `"), op, F.lit("` is none of r, c, u and d")))
        image = F.when(op == "d", self._body("before")).otherwise(self._body("after"))
        return found.when(image.isNull(), "the envelope does not hold the row: `before` of a delete, `after` of all else")

    def _body(self, name: str) -> Column:
        """A field of the envelope, which may stand beside its schema or alone."""
        from pyspark.sql import functions as F

        parsed = F.col(self.column)
        return F.coalesce(parsed.getField("payload").getField(name), parsed.getField(name))

    def _texts(self) -> list[Column]:
        """A text, or its pieces between colons when it makes several columns."""
        from pyspark.sql import functions as F

        if len(self.schema) == 1:
            return [F.col(self.column)]
        pieces = F.split(self.column, ":", len(self.schema))
        return [F.try_element_at(pieces, F.lit(index + 1)) for index in range(len(self.schema))]

    def _struct(self) -> StructType:
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(self.schema, prefer_timestamp_ntz=True)


def _enveloped(row: StructType) -> StructType:
    from pyspark.sql.types import StringType, StructType

    body = StructType().add("before", row).add("after", row).add("op", StringType())
    return StructType([*body.fields]).add("payload", body)


def _ddl(schema: StructType) -> str:
    return ", ".join(f"`{field.name.replace('`', '``')}` {field.dataType.simpleString()}" for field in schema)


def _try_cast(text: Column, field: pa.Field) -> Column:
    from pyspark.sql.pandas.types import from_arrow_type

    return text.try_cast(from_arrow_type(field.type, prefer_timestamp_ntz=True))
