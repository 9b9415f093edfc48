"""The common part of sources, transforms and sinks: options, documentation, and validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from millstream.plan.components.failure import Failure
from millstream.plan.components.lineage import Dataset
from millstream.plan.option_mistakes import Checked

REJECT = "_reject"
"""The column that holds a node's rejects."""
POSITION = "_position"
"""The column in which a source of traced records says where each record is; it goes no further."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem with a component's options: the field, and a sentence."""

    code: str
    message: str
    field: str = ""
    help: str = ""
    level: Literal["error", "warning"] = "error"
    line: int = 0
    """For text fields: line and column inside the text, from 1."""
    column: int = 0
    width: int = 1


@dataclass(frozen=True, slots=True)
class TextPlace:
    """A place in a text option such as a query: offsets, and line and column from 1."""

    start: int
    end: int
    line: int
    column: int


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
    """Options that may change between runs without a reset."""
    shaped_by: ClassVar[frozenset[str] | None] = None
    """The options that decide the output columns; None: all of them may."""
    real_time: ClassVar[bool] = False
    """Whether it can process rows one by one in Spark's own operators (real-time mode); a sink then has `stream`."""
    text_files: ClassVar[Mapping[str, str]] = {}
    """YAML-only options that name a file → the options that the file's text replaces."""
    connects: ClassVar[bool] = False
    """Whether it uses a connection, whose options apply where it does not set them itself."""

    @classmethod
    def default_connection(cls, options: Mapping[str, Any]) -> str:
        """The connection that a node with these options uses by default."""
        return cls.type

    def extras(self) -> tuple[str, ...]:
        """The extras that these options need."""
        return (self.extra,) if self.extra else ()

    @property
    def exposed(self) -> str:
        """The option that sends a login to another host without encryption; empty when none does."""
        return ""

    def recognise(self, failure: str) -> Failure | None:
        """Recognise a run's failure by its text, if it comes from the component's own system."""
        return None

    def datasets(self) -> tuple[Dataset, ...]:
        """What it reads or writes outside, for lineage."""
        return ()

    def refusal_help(self, code: str) -> str:
        """Advice for a row that the component's own expressions refuse; empty: the default advice on `on_error`."""
        return ""

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        """Problems that the options' schema cannot express."""
        return []

    def __hash__(self) -> int:
        """Hashes the text: options may contain maps, which have no hash."""
        return hash((type(self), self.model_dump_json()))
