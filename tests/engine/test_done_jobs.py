"""A job that is done is compared with its plan: unchanged it rests, changed it is refused, and nothing is taken for done that was not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millstream import FileSink, MemorySink, RunOptions, Settings, StreamEnvironment
from millstream.engine.run import jobs
from millstream.errors import RunError
from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
TEXT = """
    sources: {o: {type: memory, rows: [{id: 1}]}}
    transforms: {t: {type: sql, sql: SELECT id * 2 AS n FROM o}}
    sinks: {out: {type: file, from: t, path: out, format: json}}
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [("id: 1", "id: 777"), ("id * 2", "id * 3"), ("path: out", "path: out_q"), ("out: {type: file", "out: {on_error: drop, type: file")],
)
def test_a_changed_job_is_refused(pipeline: Callable[..., Topology], run: Callable[..., Report], old: str, new: str) -> None:
    run(pipeline(TEXT))
    with pytest.raises(RunError, match="MS147") as told:
        run(pipeline(TEXT.replace(old, new)))
    assert "nothing was run" in str(told.value)
    assert f"~ `{'o' if 'id:' in old else 't' if '*' in old else 'out'}`" in str(told.value)
    assert not Path("out_q").exists()
    assert run(pipeline(TEXT)).state == "done"
    assert run(pipeline(TEXT.replace(old, new)), again=True).rows_written == 1


def test_a_job_that_is_half_done_does_not_skip_its_changed_half(pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    run(pipeline(TEXT))
    more = TEXT.replace("rows: [{id: 1}]}", "rows: [{id: 7}]}, p: {type: memory, rows: [{id: 1}]}")
    with pytest.raises(RunError, match="MS147"):
        run(pipeline(more.replace("out: {", "new: {type: memory, from: p}, out: {")))


def test_the_comparison_is_what_refuses_it(
    pipeline: Callable[..., Topology], run: Callable[..., Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(pipeline(TEXT))
    monkeypatch.setattr(jobs, "changes", lambda *_: [])
    assert run(pipeline(TEXT.replace("id: 1", "id: 777"))).state == "done"


def test_python_is_told_in_its_own_words(spark: Any, tmp_path: Path) -> None:
    def job(ident: int) -> tuple[StreamEnvironment, MemorySink]:
        env, sink = StreamEnvironment("job", settings=Settings(checkpoint=str(tmp_path / "ck")), spark=spark), MemorySink()
        env.from_rows([{"id": ident}]).to(sink)
        return env, sink

    job(1)[0].execute()
    assert "`execute(RunOptions(again=True))`" in job(1)[0].execute().notes[0]
    env, sink = job(2)
    with pytest.raises(RunError, match=r"`execute\(RunOptions\(again=True\)\)` repeats it") as told:
        env.execute()
    assert "--again" not in str(told.value)
    env.execute(RunOptions(again=True))
    assert sink.rows() == [{"id": 2}]


def test_long_rows_are_shown_where_they_differ(spark: Any, tmp_path: Path) -> None:
    def run(last: int) -> None:
        env = StreamEnvironment("job", settings=Settings(checkpoint=str(tmp_path / "ck")), spark=spark)
        env.from_rows([*({"id": n} for n in range(5000)), {"id": last}]).to(FileSink(path=str(tmp_path / "out"), format="json"))
        env.execute()

    run(123456)
    with pytest.raises(RunError, match="'id': 654321") as told:
        run(654321)
    assert len(str(told.value)) < 2000
