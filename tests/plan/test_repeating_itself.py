"""SQL that gives other rows each time is recognised by its words; when in doubt it counts as such."""

from __future__ import annotations

import pytest

from millstream.sql.check.query import Query, parse_query

VARYING = [
    "aes_encrypt(a, k)",
    "aes_encrypt(a, k, 'GCM')",
    "aes_encrypt(a, concat(k, 'x', 'y', 'z', 'w'))",
    "aes_encrypt(a, k, 'CBC', 'DEFAULT', '')",
    "reflect('java.util.UUID', 'randomUUID')",
    "try_reflect('java.util.UUID', 'randomUUID')",
    "java_method('java.util.UUID', 'randomUUID')",
    "current_time",
    "current_time(3)",
    "TIMESTAMP 'now'",
    "DATE 'today'",
    "CAST('Yesterday ' AS DATE)",
    "at < 'tomorrow UTC'",
    "input_file_block_start()",
    "randstr(3)",
    "uuid()",
]
FIXED = [
    "aes_encrypt(a, k, 'ECB')",
    "aes_encrypt(a, k, 'GCM', 'DEFAULT', unhex('000000000000000000000000'))",
    "TIMESTAMP '2026-01-01'",
    "DATE 'epoch'",
    "uuid",
    "'known'",
    "current_user()",
    "now()",
]


@pytest.mark.parametrize("expression", VARYING)
def test_what_varies(expression: str) -> None:
    assert not Query(expression, None).deterministic


@pytest.mark.parametrize("expression", FIXED)
def test_what_does_not(expression: str) -> None:
    assert Query(expression, None).deterministic


def test_a_sample_varies() -> None:
    assert not parse_query("SELECT * FROM t TABLESAMPLE (10 PERCENT)").deterministic
