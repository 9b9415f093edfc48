"""Rows that Spark's parsers refuse: detection in failure texts, and the default advice."""

from __future__ import annotations

ADVICE = "`on_error: drop` leaves such rows out, `on_error: {dead_letter: SINK}` keeps them"
_SIGNS = ("MALFORMED_RECORD_IN_PARSING", "MALFORMED_CSV_RECORD", "Malformed records are detected")


def is_malformed(failure: str) -> bool:
    """Whether a row does not fit the format or the schema."""
    return any(sign in failure for sign in _SIGNS)
