"""Checks, and what they find."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

PATIENCE = 20.0
"""Seconds that one check may take."""


@dataclass(frozen=True, slots=True)
class Check:
    """One promise. `run` returns what is wrong, or an empty text."""

    name: str
    run: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Finding:
    """A promise that is not kept."""

    check: str
    reason: str

    def __str__(self) -> str:
        return f"{self.check}: {self.reason}"


def run_checks(checks: Iterable[Check]) -> list[Finding]:
    found = [(check, _outcome(check)) for check in checks]
    return [Finding(check.name, reason) for check, reason in found if reason]


def _outcome(check: Check) -> str:
    """What is wrong. A check that does not end has found something too."""
    outcome: list[str] = []
    thread = threading.Thread(target=lambda: outcome.append(_reason(check.run)), daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return outcome[0] if outcome else f"it has not ended after {PATIENCE:g} seconds"


def _reason(run: Callable[[], str]) -> str:
    try:
        return run()
    except Exception as error:  # noqa: BLE001 — whatever a plugin raises is a finding
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/millstream/" not in frame.filename]
        place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
        return f"{type(error).__name__}: {error}{place}"


def difference(expected: list[Any], found: list[Any]) -> str:
    """What is lost or there twice; empty when nothing is."""
    missing, more = _without(expected, found), _without(found, expected)
    parts = [f"{len(missing)} rows are lost, such as {missing[0]}"] if missing else []
    parts += [f"{len(more)} rows are there that should not be, such as {more[0]}"] if more else []
    return "; ".join(parts)


def _without(rows: list[Any], others: list[Any]) -> list[Any]:
    left = [repr(other) for other in others]
    found = []
    for row in rows:
        if repr(row) in left:
            left.remove(repr(row))
        else:
            found.append(row)
    return found
