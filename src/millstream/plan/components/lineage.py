"""Where data comes from and goes to, in the words of OpenLineage: datasets outside, and the columns that a column is made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa

from millstream.plan.expressions import columns_in

How = Literal["IDENTITY", "TRANSFORMATION", "AGGREGATION"]
"""From the least to the most that happens to a value."""


@dataclass(frozen=True, slots=True, order=True)
class Dataset:
    """A topic, a table or a folder outside, by the names that OpenLineage gives to them."""

    namespace: str
    name: str

    @classmethod
    def of_topic(cls, servers: str, topic: str) -> Dataset:
        """A topic of Kafka, by the first of its servers."""
        return cls(f"kafka://{servers.split(',', maxsplit=1)[0].strip()}", topic)

    @classmethod
    def of_table(cls, system: str, server: str, *names: str) -> Dataset:
        """A table of a database, as `postgres`, `host:5432`, and the names of database, schema and table."""
        return cls(f"{system}://{server}", ".".join(name for name in names if name))

    @classmethod
    def of_path(cls, path: str) -> Dataset:
        """A folder or a file; a relative path starts at the working directory."""
        scheme, separator, rest = path.partition("://")
        if not separator or scheme == "file":
            return cls("file", str(Path(rest if separator else path).absolute()))
        bucket, _, name = rest.partition("/")
        return cls(f"{'s3' if scheme in {'s3a', 's3n'} else scheme}://{bucket}", name or "/")


@dataclass(frozen=True, slots=True)
class Origin:
    """A column of an input, and what a transform does with it."""

    input: str
    column: str
    how: How = "IDENTITY"


Origins = Mapping[str, tuple[Origin, ...]]
"""Output column → what it is made of"""


def unchanged(inputs: Mapping[str, pa.Schema | None]) -> Origins | None:
    """Each column is the column of that name; None while an input's columns are not known."""
    found: dict[str, list[Origin]] = {}
    for name, schema in inputs.items():
        if schema is None:
            return None
        for column in schema.names:
            found.setdefault(column, []).append(Origin(name, column))
    return {column: tuple(origins) for column, origins in found.items()}


def of_expressions(expressions: Mapping[str, str], inputs: Mapping[str, pa.Schema | None], how: How = "TRANSFORMATION") -> Origins | None:
    """The columns that expressions over one input read."""
    ((name, schema),) = inputs.items()
    if schema is None:
        return None
    places = {column.lower(): column for column in schema.names}
    return {column: tuple(_of_expression(text, name, places, how)) for column, text in expressions.items()}


def _of_expression(text: str, input_name: str, places: Mapping[str, str], how: How) -> Iterable[Origin]:
    if text.strip("`").lower() in places:
        return [Origin(input_name, places[text.strip("`").lower()], "IDENTITY" if how == "TRANSFORMATION" else how)]
    read = [next((places[part.name.lower()] for part in column.parts if part.name.lower() in places), None) for column in columns_in(text)]
    return [Origin(input_name, column, how) for column in dict.fromkeys(read) if column is not None]
