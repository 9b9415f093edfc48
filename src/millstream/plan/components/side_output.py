"""Base class for side outputs: they see the batches of nodes, and do not change them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from millstream.plan.option_mistakes import Checked
from millstream.worker.plugin_tasks import Task


class SideOutput(BaseModel, metaclass=Checked):
    """Sees the batches of sources or transforms. It implements `observe`."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True, arbitrary_types_allowed=True)
    plugin_kind: ClassVar[str] = "side_output"

    type: ClassVar[str]
    summary: ClassVar[str] = ""
    """One line for lists and docs; the class docstring says more."""
    example: ClassVar[str] = ""
    text_files: ClassVar[Mapping[str, str]] = {}

    def observe(self, batch: pa.RecordBatch, task: Task) -> None:
        """See a batch, on a worker. An epoch that is repeated is seen again; what this raises fails the epoch."""
        raise NotImplementedError
