"""What may change between runs, and what may not."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millstream import read_committed
from millstream.errors import RunError

pytestmark = pytest.mark.spark
TEXT = """
sources:
  rows: {type: file, path: in, format: json, schema: {id: int64}, max_files_per_epoch: 1, mode: {type: continuous}}
transforms:
  step: {type: sql, sql: SELECT id * 2 AS n FROM rows}
sinks:
  out: {type: memory, from: step}
settings: {trigger: {type: available_now}}
"""


def write(number: int) -> None:
    Path("in").mkdir(exist_ok=True)
    Path(f"in/{number}.json").write_text(f'{{"id": {number}}}\n')


def rows(topology: object) -> list[int]:
    return sorted(row["n"] for row in topology.node("out").component.rows())


def test_below_the_root_a_changed_plan_starts_at_the_next_epoch(pipeline: Callable, run: Callable) -> None:
    write(1)
    run(pipeline(TEXT))
    write(2)
    changed = pipeline(TEXT.replace("id * 2", "id * 100"))
    run(changed)
    assert rows(changed) == [200]


def test_a_half_done_epoch_is_finished_with_the_query_that_its_file_had(pipeline: Callable, run: Callable) -> None:
    files = TEXT.replace("type: memory", "type: file, format: parquet, path: out")
    text = files.replace("sql: SELECT id * 2 AS n FROM rows", "sql_file: step.sql")
    write(1)
    Path("step.sql").write_text("SELECT id * 2 AS n FROM rows")
    run(pipeline(text))
    Path(".millstream/p/queries/rows/commits/0").unlink()
    shutil.rmtree("out")
    write(2)
    Path("step.sql").write_text("SELECT id * 100 AS n FROM rows")
    run(pipeline(text))
    assert sorted(read_committed("out")["n"].to_pylist()) == [2, 200]


def test_a_half_done_epoch_is_finished_with_the_plan_it_was_begun_with(pipeline: Callable, run: Callable) -> None:
    write(1)
    run(pipeline(TEXT))
    Path(".millstream/p/queries/rows/commits/0").unlink()
    write(2)
    changed = pipeline(
        TEXT.replace("id * 2", "id * 100").replace("out: {type: memory", "new: {type: memory, from: step}\n  out: {type: memory")
    )
    report = run(changed)
    assert report.epochs == 2
    assert sorted(row["n"] for row in changed.node("new").component.rows()) == [200]


def test_a_run_that_fails_before_the_half_done_epoch_does_not_forget_its_plan(pipeline: Callable, run: Callable) -> None:
    write(1)
    files = TEXT.replace("type: memory", "type: file, format: parquet, path: out")
    run(pipeline(files))
    Path(".millstream/p/queries/rows/commits/0").unlink()
    shutil.rmtree("out")
    Path("out").write_text("in the way")
    changed = files.replace("id * 2", "id * 100")
    with pytest.raises(RunError):
        run(pipeline(changed))
    Path("out").unlink()
    run(pipeline(changed))
    assert read_committed("out")["n"].to_pylist() == [2]


def test_what_happens_to_bad_rows_cannot_change_in_the_middle_of_an_epoch(pipeline: Callable, run: Callable) -> None:
    write(1)
    run(pipeline(TEXT))
    changed = TEXT.replace("max_files_per_epoch: 1", "max_files_per_epoch: 1, on_error: drop")
    Path(".millstream/p/queries/rows/commits/0").unlink()
    with pytest.raises(RunError, match="half done"):
        run(pipeline(changed))
    run(pipeline(TEXT))
    write(2)
    later = pipeline(changed)
    run(later)
    assert rows(later) == [4]


def test_at_the_root_a_change_is_refused_with_the_difference(pipeline: Callable, run: Callable) -> None:
    write(1)
    run(pipeline(TEXT))
    changed = pipeline(TEXT.replace("path: in", "path: elsewhere"))
    Path("elsewhere").mkdir()
    with pytest.raises(RunError) as refused:
        run(changed, flags=True)
    (error,) = refused.value.diagnostics
    assert error.code == "MS053"
    assert "`path` was `in`, is `elsewhere`" in error.detail
    assert "--reset rows" in error.help
    assert "`out`" in error.help


def test_an_option_that_only_tunes_may_change_anywhere(pipeline: Callable, run: Callable) -> None:
    write(1)
    run(pipeline(TEXT))
    write(2)
    tuned = pipeline(TEXT.replace("max_files_per_epoch: 1", "max_files_per_epoch: 7"))
    run(tuned)
    assert rows(tuned) == [4]


def test_a_lambda_in_a_half_done_epoch_needs_a_word(tmp_path: Path, spark: object) -> None:
    from millstream import BlackholeSink, MemorySource, RunOptions, Settings, StreamEnvironment

    def flow(name: str):
        env = StreamEnvironment("p", settings=Settings(checkpoint=str(tmp_path / "ck")), spark=spark)
        source = MemorySource(rows=({"id": 1}, {"id": 2}), rows_per_epoch=1)
        return env.from_source(source, "rows").map_batches(lambda batch: batch, schema={"id": "int64"}, name=name).to(BlackholeSink())

    flow("step").execute()
    (tmp_path / "ck/queries/rows/commits/1").unlink()
    (tmp_path / "ck/_millstream/finished/rows.json").unlink()
    with pytest.raises(RunError, match="MS054"):
        flow("other").execute()
    assert flow("other").execute(RunOptions(accept_change=True)).state == "done"


WINDOWED = """
name: p
sources:
  clicks:
    type: file
    path: in
    format: json
    schema: {at: timestamp}
    event_time: {column: at, watermark: 1s}
transforms:
  counted: {type: window, from: clicks, window: {type: tumbling, size: 1m}, aggregate: {n: count(*)}}
sinks:
  out: {type: blackhole, from: counted}
settings: {trigger: {type: available_now}}
"""


def test_waiting_longer_keeps_the_state_and_another_window_does_not(pipeline: Callable[..., Any], run: Callable[..., Any]) -> None:
    topology = pipeline(WINDOWED)
    Path("in").mkdir()
    Path("in/1.json").write_text('{"at": "2024-01-01T00:00:00Z"}\n')
    run(topology)
    run(pipeline(WINDOWED.replace("watermark: 1s", "watermark: 1h").replace("count(*)}}", "count(*)}, late: drop}")))
    with pytest.raises(RunError, match=r"MS053(?s:.*)`window` was .*1m.*is .*5m"):
        run(pipeline(WINDOWED.replace("size: 1m", "size: 5m")))
