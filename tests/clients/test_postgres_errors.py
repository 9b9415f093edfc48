"""What Postgres' errors mean: some may pass by themselves and are tried again, all others stop the pipeline at once."""

from __future__ import annotations

import psycopg
import pytest

from millstream.clients.postgres import Address, is_temporary, translate_error, translate_errors
from millstream.errors import RunError, TemporaryError

ADDRESS = Address({"host": "h", "port": "1", "dbname": "d", "password": "topsecret"})
PASSING = {
    "08000": "connection exception",
    "08006": "connection failure",
    "25006": "read-only transaction, as on a replica after a failover",
    "40001": "serialization failure",
    "40P01": "deadlock",
    "53100": "disk full",
    "53300": "too many connections",
    "55P03": "lock not available",
    "57014": "query cancelled, as by a statement timeout",
    "57P01": "the administrator shuts it down",
    "57P03": "it is starting",
    "58030": "input or output error",
}
LASTING = {
    "0A000": "feature not supported",
    "22001": "a text too long",
    "22003": "a number out of range",
    "23505": "unique violation",
    "25001": "active transaction",
    "25P02": "in failed transaction",
    "28P01": "invalid password",
    "3D000": "no such database",
    "40002": "integrity constraint violated at commit",
    "42501": "insufficient privilege",
    "42601": "syntax error",
    "42P01": "no such table",
    "55006": "object in use",
    "P0001": "a trigger's own error",
    "XX000": "internal error",
}


def failed(state: str) -> psycopg.Error:
    return type("Failed", (psycopg.Error,), {"sqlstate": state, "__module__": "psycopg.errors"})("it failed")


@pytest.mark.parametrize("state", PASSING, ids=PASSING.get)
def test_what_may_pass_is_tried_again(state: str) -> None:
    assert is_temporary(state)
    assert isinstance(translate_error(failed(state), ADDRESS), TemporaryError)


@pytest.mark.parametrize("state", LASTING, ids=LASTING.get)
def test_what_lasts_stops_at_once(state: str) -> None:
    assert not is_temporary(state)
    assert type(translate_error(failed(state), ADDRESS)) is RunError


@pytest.mark.parametrize(
    ("text", "kind", "code"),
    [
        ("connection failed: FATAL:  password authentication failed for user", RunError, "MS111"),
        ("connection failed: could not connect to server: Connection refused", TemporaryError, "MS110"),
        ("server closed the connection unexpectedly", TemporaryError, "MS110"),
    ],
)
def test_an_error_without_a_state_is_one_of_the_connection(text: str, kind: type[Exception], code: str) -> None:
    found = translate_error(psycopg.OperationalError(text), ADDRESS)
    assert (type(found), found.diagnostics[0].code) == (kind, code)
    assert "topsecret" not in str(found)


def test_a_statement_that_never_left_is_no_trouble_with_the_server() -> None:
    """It is a bug, and says so, instead of being tried again for ever."""
    with pytest.raises(psycopg.ProgrammingError), translate_errors(ADDRESS):
        raise psycopg.ProgrammingError("the query has 2 placeholders but 1 parameters were passed")
