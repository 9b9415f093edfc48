"""A query as a tree of steps, and changes of a step's rows as a plan."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pyspark.sql import DataFrame

from millstream.engine.incremental.weights import HASH, WEIGHT, column_names
from millstream.sql.analysed.plans import Origin, origin
from millstream.sql.catalyst.bridge import Bridge, Expression, Plan

REQUIRED = frozenset({HASH, WEIGHT})
"""Columns that are never null: with a nullable hash, Spark does not see that a union's parts are partitioned alike."""
_UNSTORABLE = re.compile(r"\b(variant|interval|void|collate|time\(\d\)|geography|geometry)(?!\w)")
_FIELD = re.compile(r"(?<=[<,])[^<>,:()]+:")
"""The name of a struct's field."""


class Refused(Exception):  # noqa: N818 — a finding about the user's query, and no error of the program
    """A query, or a part of it, cannot be kept up to date."""

    def __init__(self, reason: str, at: Plan | Expression | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.origin: Origin | None = origin(at) if at is not None else None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a step."""

    id: int
    name: str
    attribute: Expression


@dataclass(frozen=True, slots=True)
class Step:
    """One node of Spark's optimised plan."""

    kind: str
    plan: Plan
    columns: tuple[Column, ...]
    children: tuple[Step, ...] = ()
    input: str = ""
    """The input that a leaf stands for."""

    def walk(self) -> Iterator[Step]:
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class Delta:
    """Changes of a step's rows, as a plan: the step's own columns and a weight."""

    plan: Plan
    weight: Expression


@dataclass(frozen=True, slots=True)
class Relations:
    """Converts between Spark's plans, whose columns have identities, and frames, whose columns are `c0`, `c1`, …"""

    bridge: Bridge

    def columns_of(self, plan: Plan) -> tuple[Column, ...]:
        """The columns of a plan, each once: `SELECT a, a` has the same column twice."""
        found: dict[int, Column] = {}
        for attribute in self.bridge.items(plan.output()):
            found.setdefault(int(attribute.exprId().id()), Column(int(attribute.exprId().id()), str(attribute.name()), attribute))
        return tuple(found.values())

    def frame_of(self, delta: Delta, columns: tuple[Column, ...], keys: Iterable[Expression] | None = None) -> DataFrame:
        """`c0`, `c1`, …, `_w`, and `_h` of the keys if there are any to work by."""
        bridge = self.bridge
        items = [*self.renamed(columns), bridge.alias(delta.weight, WEIGHT)]
        if keys is not None:
            items.append(bridge.alias(bridge.hash_of(list(keys)), HASH))
        return bridge.frame(bridge.project(items, delta.plan))

    def renamed(self, columns: tuple[Column, ...]) -> list[Expression]:
        """The columns under their positional names, as plain values: grouping rows by them merges no sessions."""
        names = column_names(len(columns))
        return [self.bridge.alias(each.attribute, name, is_session=False) for each, name in zip(columns, names, strict=True)]

    def delta_of(self, frame: DataFrame, columns: tuple[Column, ...]) -> Delta:
        plan, extra = self.plan_of(frame, columns, [WEIGHT])
        return Delta(plan, extra[WEIGHT])

    def plan_of(self, frame: DataFrame, columns: tuple[Column, ...], more: Iterable[str] = ()) -> tuple[Plan, dict[str, Expression]]:
        """A plan over a frame whose positional columns have the identities of a step's columns again, so that the step's expressions can
        be used as they are. `more` are columns of the frame that get new identities.
        """
        bridge, plan = self.bridge, frame._jdf.logicalPlan()
        own = {str(each.name()): each for each in bridge.items(plan.output())}
        items = [
            bridge.alias(own[name], each.name, each.attribute.exprId())
            for each, name in zip(columns, column_names(len(columns)), strict=True)
        ]
        extra = {name: bridge.alias(own[name], name) for name in more}
        return bridge.project([*items, *extra.values()], plan), {name: alias.toAttribute() for name, alias in extra.items()}

    def no_rows(self, columns: tuple[Column, ...]) -> DataFrame:
        """A frame of a step without rows, with `_w` and `_h`."""
        bridge = self.bridge
        names = column_names(len(columns))
        items = [bridge.alias(bridge.null_of(each.attribute.dataType()), name) for each, name in zip(columns, names, strict=True)]
        items += [bridge.alias(bridge.expression("1L"), WEIGHT), bridge.alias(bridge.expression("0L"), HASH)]
        return bridge.frame(bridge.filter(bridge.expression("false"), bridge.project(items, bridge.one_row)))


def is_unstorable(kind: str) -> bool:
    """Whether values of a type, in Spark's notation, cannot be written to Parquet or compared. Names of fields do not count."""
    return bool(_UNSTORABLE.search(_FIELD.sub("", kind)))
