"""Carries a Diagnostic through Spark's exception text and restores it on the driver, with its code, message and whether it is temporary.

Spark converts an exception in a Python process to text with its trace. The diagnostic is written into that text and parsed again.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from millstream.errors import Diagnostic, RunError, TemporaryError

_MARK = re.compile(r"millstream-diagnostic:([A-Za-z0-9+/=]+);")


class CarriedError(Exception):
    """A diagnostic as text."""


@contextmanager
def carry_errors(node: str = "") -> Iterator[None]:
    """Errors of Millstream leave the body as text that `restore_error` can parse; `node` is where they occurred, if known."""
    try:
        yield
    except Exception as error:
        # by its form and not by its class: on a worker the class may be a pickled copy of the one that was raised
        diagnostics = getattr(error, "diagnostics", ())
        if not diagnostics:
            raise
        found = diagnostics[0]
        temporary = any(kind.__name__ == TemporaryError.__name__ for kind in type(error).__mro__)
        facts = {"node": node, "temporary": temporary}
        facts |= {"code": found.code, "message": found.message, "detail": found.detail, "help": found.help}
        text = base64.b64encode(json.dumps(facts).encode()).decode()
        raise CarriedError(f"{found.message} (millstream-diagnostic:{text};)") from None


def restore_error(text: str) -> tuple[str, RunError] | None:
    """The node and the error in a text, if there is one."""
    found = _MARK.search(text)
    if found is None:
        return None
    facts = json.loads(base64.b64decode(found[1]))
    kind = TemporaryError if facts["temporary"] else RunError
    return facts["node"], kind(Diagnostic(facts["code"], facts["message"], detail=facts["detail"], help=facts["help"]))
