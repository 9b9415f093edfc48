"""A view over random queries and random changes has Spark's batch answer after every epoch.

`FUZZ_SECONDS` is the time, `SEED` the first seed; `python -m tests.sql.random SEED COUNT` runs any number of cases and shrinks failures.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from tests.sql.random.cases import Case, check
from tests.sql.random.generator import make_case
from tests.sql.random.regressions import CASES
from tests.sql.random.runner import run, until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.sql.random.oracle import Oracle

SECONDS = float(os.environ.get("FUZZ_SECONDS", "40"))
SEED = int(os.environ.get("SEED", "1"))
CONTROLS = 6
"""Cases with which the harness itself is tried."""


@pytest.fixture(scope="module")
def oracle(spark: SparkSession) -> Oracle:
    from tests.sql.random.oracle import Oracle

    return Oracle(spark)


def test_a_seed_makes_one_case() -> None:
    for seed in range(50):
        case = make_case(seed)
        check(case)
        assert str(case) == str(make_case(seed))


@pytest.mark.spark
def test_random_queries_have_the_batch_answer(oracle: Oracle) -> None:
    from tests.sql.random.subjects import Subject

    tally = run(oracle, Subject, until(SECONDS, SEED))
    print(tally)
    reports = [f"SEED {seed}, {outcome.kind}, {outcome.report}" for seed, outcome in tally.failures.items()]
    assert not reports, "\n\n".join([str(tally), *reports])
    assert tally.statuses["passed"] > 0, str(tally)


@pytest.mark.spark
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_failed_once_is_right(oracle: Oracle, case: Case) -> None:
    from tests.sql.random.subjects import Subject

    outcome = oracle.judge(case, Subject)
    assert outcome.status == "passed", outcome.report


@pytest.mark.spark
def test_computing_everything_anew_is_right(oracle: Oracle) -> None:
    from tests.sql.random.reference import Recomputing

    tally = run(oracle, Recomputing, range(CONTROLS))
    assert tally.failures == {}
    assert tally.statuses["passed"] >= CONTROLS / 2, str(tally)


@pytest.mark.spark
@pytest.mark.parametrize("name", ["forgetful", "growing"])
def test_wrong_views_are_found(oracle: Oracle, name: str) -> None:
    from tests.sql.random.subjects import SUBJECTS

    tally = run(oracle, SUBJECTS[name], range(CONTROLS))
    assert tally.statuses["failed"] > tally.statuses["passed"], str(tally)
