"""Errors that come home: what a component raises in another process keeps its code, its words and whether it may pass by itself.

Spark turns an exception in a Python process into text, trace and all. The diagnostic is written into that text, and found there again.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from millstream.errors import Diagnostic, MillstreamError, RunError, TransientError

_MARK = re.compile(r"millstream-diagnostic:([A-Za-z0-9+/=]+);")


class CarriedError(Exception):
    """A diagnostic as text."""


@contextmanager
def carrying(node: str = "") -> Iterator[None]:
    """Errors of ours leave as text that `received` understands; `node` is where they happened, when it is known."""
    try:
        yield
    except MillstreamError as error:
        found = error.diagnostics[0]
        facts = {"node": node, "transient": isinstance(error, TransientError)}
        facts |= {"code": found.code, "message": found.message, "detail": found.detail, "help": found.help}
        text = base64.b64encode(json.dumps(facts).encode()).decode()
        raise CarriedError(f"{found.message} (millstream-diagnostic:{text};)") from None


def received(text: str) -> tuple[str, RunError] | None:
    """The node and the error that a text carries."""
    found = _MARK.search(text)
    if found is None:
        return None
    facts = json.loads(base64.b64decode(found[1]))
    kind = TransientError if facts["transient"] else RunError
    return facts["node"], kind(Diagnostic(facts["code"], facts["message"], detail=facts["detail"], help=facts["help"]))
