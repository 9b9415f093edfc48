"""Base class for functions of SQL with options: a plugin, where a plain function with `@millstream.function` has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pyarrow as pa

from millstream.plan.components.plugin_options import PluginOptions
from millstream.plan.components.shipping import for_workers


class Udf(PluginOptions):
    """A function that SQL calls. It implements `call`: one Arrow array per argument gives one array of equal length. An aggregate gets the
    values of one group, and returns one value.
    """

    plugin_kind: ClassVar[str] = "udf"
    returns: ClassVar[str]
    """The Arrow type of the result, such as `int64`."""
    aggregate: ClassVar[bool] = False
    """Whether it computes one value from all values of a group."""
    deterministic: ClassVar[bool] = True
    """Whether equal input gives equal output."""

    def call(self, *columns: pa.Array) -> Any:
        """The result. Called on workers."""
        raise NotImplementedError

    def declaration(self) -> dict[str, Any]:
        """What `@millstream.function` says of a plain function."""
        return {"returns": self.returns, "aggregate": self.aggregate, "deterministic": self.deterministic}

    def for_workers(self) -> Callable[..., Any]:
        """The function without its options class."""
        found: Callable[..., Any] = for_workers(self, "call").call
        return found
