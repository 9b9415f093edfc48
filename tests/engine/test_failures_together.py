"""Several queries that fail for one reason are told once; it may work later only when all of it may."""

from millstream.engine.run.execution import _combine
from millstream.errors import Diagnostic, RunError, TemporaryError

GONE, AWAY = Diagnostic("MS060", "`rows`: there is nothing at `in`"), Diagnostic("MS091", "Kafka does not answer")


def test_the_same_finding_of_two_queries_is_told_once() -> None:
    assert _combine([RunError(GONE), RunError([GONE, AWAY])]).diagnostics == (GONE, AWAY)


def test_one_failure_that_stays_makes_the_whole_stay() -> None:
    assert type(_combine([TemporaryError(AWAY), TemporaryError(AWAY)])) is TemporaryError
    assert type(_combine([TemporaryError(AWAY), RunError(GONE)])) is RunError
