"""A side output of a pipeline, with its name and the sources that it sees."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field, replace
from typing import Any

from millstream.errors import Span
from millstream.plan.components.side_output import SideOutput


@dataclass(frozen=True, slots=True)
class SideOutputNode:
    """One side output."""

    name: str
    component: SideOutput
    sources: tuple[str, ...] = ()
    """The sources whose rows it sees; empty: all."""
    span: Span | None = field(default=None, compare=False)
    source_spans: dict[str, Span] = field(default_factory=dict, compare=False, hash=False, repr=False)

    def sees(self, source: str) -> bool:
        return not self.sources or source in self.sources

    def over(self, nodes: Container[str]) -> SideOutputNode | None:
        """The side output of a part of the pipeline; None if it sees none of its sources."""
        left = tuple(name for name in self.sources if name in nodes)
        return replace(self, sources=left) if left or not self.sources else None

    def document(self) -> dict[str, Any]:
        """The side output as its YAML block."""
        values = self.component.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return {"type": self.component.type, **({"from": list(self.sources)} if self.sources else {}), **values}
