"""A server that has never answered has a wrong address: that is no temporary failure. One that has answered may be away for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from millstream.errors import RunError, TransientError
from millstream.plan.components import NodeContext

_FILE = "reached"


@contextmanager
def reached(context: NodeContext) -> Iterator[None]:
    """What is within talks to the server."""
    try:
        yield
    except TransientError as error:
        raise error if context.storage.exists(_FILE) else RunError(error.diagnostics) from None
    context.storage.put_once(_FILE, b"")
