"""Base class for side outputs: they see the batches of nodes, and do not change them."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa

from millstream.plan.components.plugin_options import PluginOptions
from millstream.worker.plugin_tasks import Task


class SideOutput(PluginOptions):
    """Sees the batches of sources or transforms. It implements `observe`."""

    plugin_kind: ClassVar[str] = "side_output"

    def observe(self, batch: pa.RecordBatch, task: Task) -> None:
        """See a batch, on a worker. An epoch that is repeated is seen again; what this raises fails the epoch."""
        raise NotImplementedError
