"""Cases that failed once, as the shrinker printed them."""

from __future__ import annotations

from tests.sql.random.cases import Case

CASES: dict[str, Case] = {}
"""what was wrong → the case"""
