"""A view over random queries and random changes has Spark's batch answer after every epoch.

`FUZZ_SECONDS` is the time, `SEED` the first seed; `python -m tests.sql.random SEED COUNT` runs any number of cases and shrinks failures.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest
from tests.sql.random.cases import Case, Table, check
from tests.sql.random.generator import make_case
from tests.sql.random.regressions import CASES
from tests.sql.random.runner import run, until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.sql.random.oracle import Oracle

SECONDS = float(os.environ.get("FUZZ_SECONDS", "40"))
SEED = int(os.environ.get("SEED", "1"))
LEAST = 6
"""So many cases run on a slow machine too, and half of them must pass: the others may be refused, or have no rows."""
REFUSALS = r"two columns of the result are called|lose the LIMIT|LIMIT in LATERAL needs|a map in GROUP BY"
"""What the engine may refuse of these queries."""
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
    from tests.sql.random.subjects import engine

    tally = run(oracle, engine, until(SECONDS, SEED, LEAST))
    print(tally)
    reports = [f"SEED {seed}, {outcome.kind}, {outcome.report}" for seed, outcome in tally.failures.items()]
    assert not reports, "\n\n".join([str(tally), *reports])
    assert tally.statuses["passed"] >= max(LEAST, sum(tally.statuses.values())) / 2, str(tally)
    assert tally.statuses["refused"] <= 1 + tally.statuses["passed"] * 0.08, str(tally)
    assert tally.statuses["invalid"] <= 1 + tally.statuses["passed"] * 0.08, str(tally)
    unknown = [reason for reason in tally.refusals if not re.search(REFUSALS, reason)]
    assert not unknown, f"refused for a new reason: {unknown}"


@pytest.mark.spark
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_failed_once_is_right(oracle: Oracle, case: Case) -> None:
    from tests.sql.random.subjects import engine

    outcome = oracle.judge(case, engine)
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


TOTALS = Case(
    seed=57,
    query="SELECT a AS a, sum(b) AS s FROM t0 GROUP BY a HAVING count(*) > 0",
    tables=(Table("t0", (("a", "bigint"), ("b", "bigint")), key=("b",)),),
    epochs=({"t0": (((1, 1), 1), ((2, 2), 1))}, {"t0": (((1, 3), 1),)}, {"t0": (((1, 1), -1), ((2, 4), 1))}),
)
"""A case with a restart before its second epoch."""


@pytest.mark.spark
def test_an_engine_that_forgets_or_has_wrong_ops_is_found(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.sql.random.subjects import engine

    from millstream.engine.incremental import maintenance
    from millstream.plan.changelog import OP

    assert oracle.judge(TOTALS, engine).status == "passed"
    with monkeypatch.context() as patch:
        patch.setattr(maintenance.Maintenance, "_restored", lambda self, epoch: self.view.empty_version())
        assert oracle.judge(TOTALS, engine).status == "failed", "without the written state"
    with monkeypatch.context() as patch:
        patch.setattr(maintenance, "with_ops", lambda frame, key, right=maintenance.with_ops: right(frame, key).replace("u", "i", OP))
        assert oracle.judge(TOTALS, engine).kind == "op", "with inserts instead of updates"
