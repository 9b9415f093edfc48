"""If a server has never answered, its address is wrong: that is not a temporary failure. A server that has answered before may be
temporarily down.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from millstream.errors import RunError, TemporaryError
from millstream.plan.components import NodeContext

_FILE = "reached"


@contextmanager
def first_contact(context: NodeContext) -> Iterator[None]:
    """Run the body, which talks to the server."""
    try:
        yield
    except TemporaryError as error:
        raise error if context.storage.exists(_FILE) else RunError(error.diagnostics) from None
    context.storage.put_once(_FILE, b"")
