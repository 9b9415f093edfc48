"""How a transform's function travels to the workers: with the pipeline's own modules, and with the code that calls it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from millstream.plan import shipping
from millstream.transforms import batches


def by_value(directory: Path, function: Callable[..., Any]) -> AbstractContextManager[None]:
    """Within this, functions of the pipeline's own modules, and what they refer to, are pickled whole."""
    from pyspark import cloudpickle

    return shipping.by_value(cloudpickle, directory, function, batches)
