"""What sources, transforms and sinks have in common: options, a place in the docs, and problems of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from millstream.plan.mistakes import Checked

REJECT = "_reject"
"""The column of rows that a node cannot handle."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What a component finds wrong with itself: the field, and a sentence."""

    code: str
    message: str
    field: str = ""
    help: str = ""
    level: Literal["error", "warning"] = "error"
    line: int = 0
    """For text fields: line and column inside the text, from 1."""
    column: int = 0
    width: int = 1


class Component(BaseModel, metaclass=Checked):
    """Options of one node."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True, arbitrary_types_allowed=True)

    type: ClassVar[str]
    summary: ClassVar[str] = ""
    """One line for lists and docs; the class docstring says more."""
    example: ClassVar[str] = ""
    """A YAML block that a test loads."""
    extra: ClassVar[str] = ""
    """The optional dependency (and jars) that it needs."""
    adjustable: ClassVar[frozenset[str]] = frozenset()
    """Options that may change between runs without touching what progress means."""
    shaped_by: ClassVar[frozenset[str] | None] = None
    """The options that decide which columns come out; None: any of them may."""
    real_time: ClassVar[bool] = False
    """Whether it can handle rows one by one as they come, in Spark's own operators; a sink then has `stream`."""
    connects: ClassVar[bool] = False
    """Whether it reaches an outside system by a connection, whose options are its own where it does not give them itself."""

    @classmethod
    def default_connection(cls, options: Mapping[str, Any]) -> str:
        """The connection that a node with these options uses when it names none."""
        return cls.type

    def extras(self) -> tuple[str, ...]:
        """The extras that these options need."""
        return (self.extra,) if self.extra else ()

    @property
    def exposed(self) -> str:
        """The option by which a login goes to another host without encryption; empty where it does not."""
        return ""

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        """What the schema of options cannot say."""
        return []

    def __hash__(self) -> int:
        """Options may hold maps, which have no hash of their own; their text has."""
        return hash((type(self), self.model_dump_json()))
