"""Calls of a plugin's methods on the driver: what they raise becomes a message with the node, the plugin's line and a code."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from millstream.errors import Diagnostic, MillstreamError, RunError, TemporaryError
from millstream.plan.components.context import NodeContext
from millstream.worker.masking import hide
from millstream.worker.plugin_tasks import is_temporary


@contextmanager
def driver_call(context: NodeContext, what: str) -> Iterator[None]:
    """In the body a plugin is called. `what` is the subject of the message: its method in backticks, or what is made of its result."""
    try:
        yield
    except MillstreamError:
        raise
    except Exception as error:
        if is_temporary(error):
            raise TemporaryError(Diagnostic("MS207", f"`{context.name}`: {hide(str(error), context.hidden)}", node=context.name)) from error
        said = hide(f"{type(error).__name__}: {error}", context.hidden)
        help_ = f"correct the plugin at {place_of(error).splitlines()[0]}; the epoch is repeated, and no row is lost"
        found = Diagnostic("MS206", f"`{context.name}`: {what} raised {said}", detail=place_of(error), help=help_, node=context.name)
        raise RunError(found) from error


def place_of(error: BaseException) -> str:
    """The last line of the plugin that was running, and not of a library that it called."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "/millstream/plan/" not in frame.filename and not frame.filename.startswith("<frozen")]
    beside = [frame for frame in own if Path(frame.filename).parent == Path(own[0].filename).parent]
    frame = (beside or frames)[-1]
    return f"{frame.filename}:{frame.lineno} in {frame.name}\n    {frame.line}"
