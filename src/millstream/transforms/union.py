"""Merges the rows of several inputs into one stream."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from millstream.plan import types
from millstream.plan.changelog import INSERT, OPS, SEQUENCE, kept_columns
from millstream.plan.components import NodeContext, Origins, Problem, Transform, unchanged
from millstream.plan.tracing import TRACED
from millstream.sql.analysed.isolation import without_rejects

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WHOLE = (pa.int8(), pa.int16(), pa.int32(), pa.int64())


class Union(Transform):
    """Merges the rows of two or more inputs. Columns are matched by name; for numbers of different size, the larger type is used."""

    type: ClassVar[str] = "union"
    real_time: ClassVar[bool] = True
    summary: ClassVar[str] = "Bring the rows of several inputs together."
    example: ClassVar[str] = """
        all_orders:
          type: union
          from: [shop_orders, web_orders]
          allow_missing: true
    """
    arity: ClassVar[tuple[int, int | None]] = (2, None)

    allow_missing: bool = False
    """Whether an input may lack columns that another has; they are null then."""

    def output(self, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
        schemas = [schema for schema in _with_changelog_columns(inputs).values() if schema is not None]
        if len(schemas) < len(inputs) or self.problems(inputs, Path()):
            return None
        return pa.schema([pa.field(name, reduce(_wider, kinds)) for name, kinds in _columns(schemas).items()])

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        known = {name: schema for name, schema in _with_changelog_columns(inputs).items() if schema is not None}
        if len(known) < len(inputs):
            return []
        found = [] if self.allow_missing else _missing_columns(known)
        for name, kinds in _columns(list(known.values())).items():
            if reduce(_wider, kinds) is None:
                named = " and ".join(dict.fromkeys(types.name_of(kind) for kind in kinds))
                found.append(Problem("MS035", f"column `{name}` is {named}: no type holds both", "from", "cast it in a transform before"))
        return found

    def origins(self, inputs: Mapping[str, pa.Schema | None]) -> Origins | None:
        return unchanged(inputs)

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        first, *others = _all_changes(list(frames.values()))
        merged = reduce(lambda left, right: left.unionByName(right, allowMissingColumns=self.allow_missing), others, first)
        return without_rejects(merged) if context.isolate else merged


def _all_changes(frames: list[DataFrame]) -> list[DataFrame]:
    """Next to a changelog, plain rows are inserts; next to traced records, records without a trace."""
    from pyspark.sql import functions as F

    wanted = kept_columns(name for frame in frames for name in frame.columns)
    types = {SEQUENCE: "long", TRACED: "string"}
    plain = {name: F.lit(INSERT) if name in OPS else F.lit(None).cast(types[name]) for name in wanted}
    return [frame.withColumns({name: value for name, value in plain.items() if name not in frame.columns}) for frame in frames]


def _with_changelog_columns(inputs: Mapping[str, pa.Schema | None]) -> dict[str, pa.Schema | None]:
    """The same for their schemas."""
    wanted = kept_columns(name for schema in inputs.values() if schema is not None for name in schema.names)
    fields = [pa.field(name, pa.string() if name in OPS else pa.int64()) for name in wanted]
    return {
        name: pa.schema([*schema, *(field for field in fields if field.name not in schema.names)]) if schema is not None else None
        for name, schema in inputs.items()
    }


def _columns(schemas: list[pa.Schema]) -> dict[str, list[pa.DataType]]:
    found: dict[str, list[pa.DataType]] = {}
    names: dict[str, str] = {}
    for schema in schemas:
        for field in schema:
            found.setdefault(names.setdefault(field.name.lower(), field.name), []).append(field.type)
    return found


def _missing_columns(known: Mapping[str, pa.Schema]) -> list[Problem]:
    everything = {name.lower(): (name, origin) for origin, schema in reversed(list(known.items())) for name in schema.names}
    found = []
    for origin, schema in known.items():
        for lower, (name, other) in everything.items():
            if lower not in {column.lower() for column in schema.names}:
                help_ = "select the same columns before, or set `allow_missing: true`"
                found.append(Problem("MS035", f"`{origin}` has no column `{name}`, `{other}` has", "from", help_))
    return found


def _wider(left: pa.DataType | None, right: pa.DataType | None) -> pa.DataType | None:
    """The type that holds both, as Spark widens them; None when there is none."""
    if left is None or right is None or left == right:
        return left if left == right else None
    if types.UNKNOWN in (left, right):
        return types.UNKNOWN
    if left in _WHOLE and right in _WHOLE:
        return max(left, right, key=_WHOLE.index)
    if _number(left) and _number(right):
        return types.UNKNOWN if pa.types.is_decimal(left) or pa.types.is_decimal(right) else pa.float64()
    if {pa.types.is_date(left), pa.types.is_date(right)} == {True, False} and (pa.types.is_timestamp(left) or pa.types.is_timestamp(right)):
        return right if pa.types.is_date(left) else left
    return types.UNKNOWN if pa.types.is_nested(left) and type(left) is type(right) else None


def _number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
