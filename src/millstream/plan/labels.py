"""Labels that users give to what a run reports."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

RESERVED = frozenset({"pipeline", "node", "counter", "kind", "query", "status", "le", "quantile", "run", "version", "process"})
"""The labels of Millstream's own metrics, and those of Prometheus."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _usable(labels: dict[str, str]) -> dict[str, str]:
    for name in labels:
        if name in RESERVED:
            raise ValueError(f"metrics have a label `{name}` of their own: choose another name")
        if not _NAME.fullmatch(name) or name.startswith("__"):
            raise ValueError(f"`{name}` is no name of a label: letters, digits and `_`, and no digit first")
    return labels


Labels = Annotated[dict[str, str], AfterValidator(_usable)]
"""Name → value."""
