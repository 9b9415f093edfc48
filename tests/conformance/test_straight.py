"""The golden queries, as streams in six epochs and more, equal the golden results."""

from pathlib import Path

import pytest
from tests.conformance.goldens import CHANGED, golden, names, project, query, result

from millstream.observe.report import Report
from millstream.spec.files import load_pipeline

pytestmark = [pytest.mark.spark, pytest.mark.skipif(not names(), reason="the golden data is not there")]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, spark: object) -> Path:
    from millstream.engine.engine import SparkEngine
    from millstream.plan.run_options import RunOptions

    folder = tmp_path_factory.mktemp("goldens")
    project(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        report: Report = SparkEngine(spark).run(load_pipeline(folder / "p.yaml"), RunOptions())  # type: ignore[arg-type]  # the warm session
    assert all(facts.epochs >= 6 for facts in report.queries.values())
    return folder


@pytest.mark.parametrize("name", [name for name in names() if name not in CHANGED])
def test_the_stream_gives_the_golden_result(ran: Path, name: str) -> None:
    assert result(ran, name) == golden(name)


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory, spark: object) -> Path:
    """The windowed queries with a watermark that moves with the rows: `late: fail` says that none is late."""
    from millstream.engine.engine import SparkEngine
    from millstream.plan.run_options import RunOptions

    folder = tmp_path_factory.mktemp("moving")
    project(folder, epochs=4, moving=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        SparkEngine(spark).run(load_pipeline(folder / "p.yaml"), RunOptions())  # type: ignore[arg-type]  # the warm session
    return folder


@pytest.mark.parametrize("name", [name for name in names() if name not in CHANGED and "window(" in query(name)])
def test_windows_that_close_one_by_one_give_the_golden_result(moved: Path, name: str) -> None:
    assert result(moved, name) == golden(name)
