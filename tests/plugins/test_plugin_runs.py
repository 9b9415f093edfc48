"""Plugins in pipelines, from YAML and from Python: rows, functions, side outputs, counters, the store, commits, rejects, retries."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.plugins.shelf import Numbers, Plus, Spread, SqliteSink, Tally, Times, numbers_in

import millstream
from millstream import ArrowSink, ArrowTransform, Epoch, NodeContext, StreamEnvironment, Task, TemporaryFailure
from millstream.connectors.memory.sink import MemorySinkRun
from millstream.errors import RunError
from millstream.observe.report import Report
from millstream.plan.run_options import RunOptions
from millstream.plan.topology import Topology
from millstream.secrets import Secret
from millstream.testing.conformance.surroundings import batch_of, every_type

pytestmark = pytest.mark.spark
SHELF = Path(__file__).with_name("shelf.py")
PIPELINE = f"""
sources:
  größe: {{type: shelf.numbers, folder: ., total: 6}}
transforms:
  multiplied: {{type: shelf.times, from: größe, factor: 3}}
  moved: {{type: sql, sql: "SELECT plus(m) AS n FROM multiplied"}}
sinks:
  out: {{type: shelf.sqlite, from: moved, path: out.db}}
functions:
  plus: {{type: shelf.plus, amount: 100}}
side_outputs:
  tally: {{type: shelf.tally, from: größe}}
settings:
  plugins: {SHELF}
"""


def test_a_pipeline_of_plugins(pipeline: Callable[..., Topology], run: Callable[..., Report], tmp_path: Path) -> None:
    report = run(pipeline(PIPELINE))
    assert numbers_in(tmp_path / "out.db") == [100, 103, 106, 109, 112, 115]
    assert report.rows_written == 6
    nodes = report.as_dict()["nodes"]
    assert nodes["multiplied"]["counted"] == {"multiplied": 6}
    assert nodes["tally"]["counted"] == {"seen": 6, "columns n": 2}
    assert (tmp_path / "committed").read_text() == "6"
    assert nodes["out"]["guarantee"] == "exactly_once"


def test_the_same_from_python(spark: Any, tmp_path: Path) -> None:
    env = StreamEnvironment("p", spark=spark, settings={"checkpoint": str(tmp_path / "checkpoint")})
    env.function(Plus(amount=100), "plus")
    env.side_output(Tally())
    rows = (
        env.from_source(Numbers(folder=str(tmp_path), total=6))
        .transform(Times(factor=3), name="multiplied")
        .sql("SELECT plus(m) AS n FROM multiplied")
    )
    rows.to(SqliteSink(path=str(tmp_path / "out.db")))
    report = env.execute()
    assert numbers_in(tmp_path / "out.db") == [100, 103, 106, 109, 112, 115]
    assert report.as_dict()["nodes"]["tally"]["counted"]["seen"] == 6


def test_an_aggregate_with_options(spark: Any, tmp_path: Path) -> None:
    env = StreamEnvironment("p", spark=spark)
    env.function(Spread(), "spread")
    numbers = env.from_source(Numbers(folder=str(tmp_path), total=10), "numbers")
    found = numbers.sql("SELECT n % 2 AS k, spread(n) AS s FROM numbers GROUP BY n % 2").collect()
    assert sorted(found.select(["k", "s"]).to_pylist(), key=str) == [{"k": 0, "s": 8}, {"k": 1, "s": 8}]


def test_a_source_goes_on_where_it_was(pipeline: Callable[..., Topology], run: Callable[..., Report], tmp_path: Path) -> None:
    text = f"""
    sources:
      numbers: {{type: shelf.numbers, folder: {tmp_path}}}
    sinks:
      out: {{type: shelf.sqlite, from: numbers, path: out.db}}
    settings: {{plugins: {SHELF}, trigger: {{type: available_now}}}}
    """.replace("    ", "  ")
    (tmp_path / "count").write_text("4")
    run(pipeline(text))
    (tmp_path / "count").write_text("7")
    run(pipeline(text))
    assert numbers_in(tmp_path / "out.db") == [0, 1, 2, 3, 4, 5, 6]
    assert (tmp_path / "committed").read_text() == "7"


def test_a_row_that_a_transform_refuses_is_a_dead_letter(spark: Any, tmp_path: Path) -> None:
    env = StreamEnvironment("p", spark=spark, settings={"checkpoint": str(tmp_path / "c")})
    rejects = millstream.MemorySink()
    numbers = env.from_source(Numbers(folder=str(tmp_path), total=6))
    passed = numbers.transform(Times(refused=4), on_error=env.dead_letters(rejects))
    out = millstream.MemorySink()
    passed.to(out)
    env.execute()
    assert sorted(row["n"] for row in out.rows()) == [0, 1, 2, 3, 5]
    assert [row["raw"] for row in rejects.rows()] == ['{"n": 4}']


def test_a_side_output_sees_rows_once_though_several_sinks_read_them(spark: Any, tmp_path: Path) -> None:
    env = StreamEnvironment("p", spark=spark, settings={"checkpoint": str(tmp_path / "c")})
    env.side_output(Tally())
    rows = env.from_source(millstream.GeneratorSource(rows=10, fields={"n": {"type": "sequence"}}))
    rows.to(millstream.MemorySink())
    rows.filter("n > 3").to(millstream.MemorySink())
    assert env.execute().as_dict()["nodes"]["tally"]["counted"]["seen"] == 10


@pytest.mark.parametrize(("plugged", "repeatable"), [(True, False), (False, True)], ids=["plugin", "control"])
def test_the_code_of_a_plugin_is_not_taken_for_repeatable(
    plugged: bool, repeatable: bool, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sink that computes rows twice would have to know that they are the same."""
    epochs: list[Epoch] = []
    stage = MemorySinkRun.stage
    monkeypatch.setattr(MemorySinkRun, "stage", lambda self, frame, epoch: (epochs.append(epoch), stage(self, frame, epoch))[1])
    env = StreamEnvironment("p", spark=spark, settings={"checkpoint": str(tmp_path / "c")})
    rows = env.from_source(millstream.GeneratorSource(rows=3, fields={"n": {"type": "sequence"}}))
    (rows.transform(Same()) if plugged else rows.filter("n >= 0")).to(millstream.MemorySink())
    env.execute()
    assert [epoch.repeatable for epoch in epochs] == [repeatable]


@millstream.plugin("test.lottery")
class Lottery(ArrowTransform):
    """Its rows vary."""

    @property
    def deterministic(self) -> bool:
        return False

    def process(self, batch: pa.RecordBatch, task: Task) -> pa.RecordBatch:
        return pa.RecordBatch.from_pydict({"n": [secrets.randbelow(1 << 50) for _ in range(batch.num_rows)]}, schema=batch.schema)


def test_sinks_that_share_varying_rows_have_the_same(spark: Any, tmp_path: Path) -> None:
    env = StreamEnvironment("p", spark=spark, settings={"checkpoint": str(tmp_path / "c")})
    numbers = env.from_source(Numbers(folder=str(tmp_path), total=20)).transform(Lottery())
    for name in ("one", "two"):
        numbers.to(SqliteSink(path=str(tmp_path / f"{name}.db")), name)
    env.execute()
    assert numbers_in(tmp_path / "one.db") == numbers_in(tmp_path / "two.db") != list(range(20))


@millstream.plugin("test.same")
class Same(ArrowTransform):
    """Nothing changes."""

    def process(self, batch: pa.RecordBatch, task: Task) -> pa.RecordBatch:
        return batch


@millstream.plugin("test.arrow_file")
class ArrowFile(ArrowSink):
    """An epoch as one file."""

    path: str

    def write(self, batches: Any, task: Any) -> list[bytes]:
        return [serialised(batch) for batch in batches]

    def commit(self, messages: Any, epoch: Epoch, context: NodeContext) -> None:
        tables = [pa.ipc.open_stream(each).read_all() for message in messages for each in message]
        if tables:
            Path(self.path).write_bytes(serialised(pa.concat_tables(tables)))


def serialised(rows: pa.RecordBatch | pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write(rows)
    return bytes(sink.getvalue())


def test_every_type_passes_a_transform_and_a_sink(spark: Any, tmp_path: Path) -> None:
    table = pa.Table.from_batches([batch_of(every_type())])
    env = StreamEnvironment("p", spark=spark, settings={"checkpoint": str(tmp_path / "c")})
    env.from_rows(table).transform(Same()).to(ArrowFile(path=str(tmp_path / "out")))
    env.execute()
    found = pa.ipc.open_stream((tmp_path / "out").read_bytes()).read_all()
    assert found.schema.names == table.schema.names
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, table.to_pylist()))


@millstream.plugin("test.emptying")
class Emptying(ArrowTransform):
    """It makes nulls in a column that has none."""

    def process(self, batch: pa.RecordBatch, task: Task) -> pa.RecordBatch:
        return pa.RecordBatch.from_pydict({"n": [None if n % 2 else n for n in batch.column("n").to_pylist()]}, schema=self._schema())

    def _schema(self) -> pa.Schema:
        return pa.schema([("n", pa.int64())])


def test_a_transform_may_make_nulls(spark: Any) -> None:
    env = StreamEnvironment("p", spark=spark)
    without_nulls = env.from_rows([{"n": n} for n in range(6)]).sql("SELECT coalesce(n, 0L) AS n FROM rows")
    found = without_nulls.transform(Emptying()).filter("n IS NULL").collect()
    assert found["n"].to_pylist() == [None, None, None]


@millstream.plugin("test.busy")
class Busy(ArrowSink):
    """A sink whose system is away for a moment: on the driver, or on a worker. It keeps no ledger of its own."""

    folder: str
    at: str

    def write(self, batches: Any, task: Any) -> int:
        if self.at == "worker" and not self._was_there("worker"):
            raise TemporaryFailure("the server is away")
        return sum(batch.num_rows for batch in batches)

    def commit(self, messages: Any, epoch: Epoch, context: NodeContext) -> None:
        assert context.store is not None
        if self.at == "driver" and not self._was_there("driver"):
            raise TemporaryFailure("the server is away")
        context.store.put("rows", sum(messages))
        Path(self.folder, "done").write_text(str(context.store.get("rows")))

    def _was_there(self, name: str) -> bool:
        path = Path(self.folder, name)
        there = path.exists()
        path.touch()
        return there


@pytest.mark.parametrize("at", ["driver", "worker"])
def test_a_system_that_is_away_for_a_moment_is_tried_again(at: str, spark: Any, tmp_path: Path) -> None:
    settings = {"checkpoint": str(tmp_path / "c"), "restart": {"backoff": "10ms"}}
    env = StreamEnvironment("p", spark=spark, settings=settings)
    env.from_rows([{"n": n} for n in range(5)]).to(Busy(folder=str(tmp_path), at=at))
    report = env.execute(RunOptions())
    assert (tmp_path / "done").read_text() == "5"
    assert any("the server is away; restart 1" in note for note in report.as_dict()["notes"])
    assert report.as_dict()["nodes"]["test.busy"]["guarantee"] == "at_least_once"


@millstream.plugin("test.broken")
class Broken(Busy):
    """It fails where it is told, and says a password."""

    def write(self, batches: Any, task: Any) -> Any:
        list(batches)
        if self.at == "message":
            return Path(__file__).open()
        if self.at == "write":
            raise ValueError("no such table")
        return 1

    def commit(self, messages: Any, epoch: Epoch, context: NodeContext) -> None:
        raise KeyError("no such epoch")


@pytest.mark.parametrize(
    ("at", "code", "said"),
    [
        ("message", "MS208", "TextIOWrapper"),
        ("write", "MS063", "the plugin of `target` raised ValueError: no such table"),
        ("commit", "MS206", "`commit` raised KeyError"),
    ],
)
def test_a_failure_names_the_node_and_the_line(at: str, code: str, said: str, spark: Any, tmp_path: Path) -> None:
    env = StreamEnvironment("p", spark=spark, settings={"checkpoint": str(tmp_path / "c")})
    env.from_rows([{"n": 1}]).to(Broken(folder=str(tmp_path), at=at), "target")
    with pytest.raises(RunError) as failed:
        env.execute()
    (found,) = failed.value.diagnostics
    assert (found.code, found.node) == (code, "target")
    assert said in found.message
    assert code == "MS208" or "test_plugin_runs.py" in found.detail
    assert "Traceback" not in found.render()


@millstream.plugin("test.failing_watch")
class FailingWatch(millstream.SideOutput):
    """It fails."""

    def observe(self, batch: pa.RecordBatch, task: Task) -> None:
        raise RuntimeError("no room")


def test_a_side_output_that_fails_stops_the_epoch(spark: Any, tmp_path: Path) -> None:
    env = StreamEnvironment("p", spark=spark, settings={"checkpoint": str(tmp_path / "c")})
    env.side_output(FailingWatch(), name="watch")
    env.from_source(Numbers(folder=str(tmp_path), total=3)).to(SqliteSink(path=str(tmp_path / "out.db")))
    with pytest.raises(RunError) as failed:
        env.execute()
    assert failed.value.diagnostics[0].message == "the plugin of `watch` raised RuntimeError: no room"
    assert numbers_in(tmp_path / "out.db") == []


@millstream.plugin("test.lying")
class Lying(Times):
    """It returns other columns than it declares."""

    def process(self, batch: pa.RecordBatch, task: Task) -> pa.RecordBatch:
        return batch


def test_columns_that_are_not_declared_are_refused(spark: Any, tmp_path: Path) -> None:
    env = StreamEnvironment("p", spark=spark, settings={"checkpoint": str(tmp_path / "c")})
    env.from_source(Numbers(folder=str(tmp_path), total=3)).transform(Lying()).to(millstream.BlackholeSink())
    with pytest.raises(RunError) as failed:
        env.execute()
    (found,) = failed.value.diagnostics
    assert (found.code, found.node) == ("MS064", "test.lying")
    assert "`output_schema`" in found.help


@millstream.plugin("test.secretive")
class Secretive(ArrowTransform):
    """It uses a password, and repeats it in an error."""

    password: Secret

    def process(self, batch: pa.RecordBatch, task: Task) -> pa.RecordBatch:
        raise ValueError(f"cannot log in with {self.password.reveal()} as {self.password!r}")


def test_a_secret_reaches_the_worker_and_no_message(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DB_WORD", "correct-horse")
    env = StreamEnvironment("p", spark=spark, settings={"checkpoint": str(tmp_path / "c")})
    env.from_rows([{"n": 1}]).transform(Secretive(password="secret://env/DB_WORD")).to(millstream.BlackholeSink())
    with pytest.raises(RunError) as failed:
        env.execute()
    assert "correct-horse" not in str(failed.value)
    assert "cannot log in with *** as ***" in failed.value.diagnostics[0].message


@millstream.plugin("test.dying")
class Dying(ArrowTransform):
    """Its worker is killed, as by a system without memory."""

    def process(self, batch: pa.RecordBatch, task: Task) -> pa.RecordBatch:
        os.kill(os.getpid(), signal.SIGKILL)
        return batch


def test_a_worker_that_dies_is_named(spark: Any, tmp_path: Path) -> None:
    env = StreamEnvironment("p", spark=spark, settings={"checkpoint": str(tmp_path / "c"), "restart": {"limit": 0}})
    env.from_source(Numbers(folder=str(tmp_path), total=3)).transform(Dying(), name="dying").to(millstream.BlackholeSink())
    with pytest.raises(RunError) as failed:
        env.execute()
    (found,) = failed.value.diagnostics
    assert (found.code, found.node) == ("MS065", "dying")
    assert "batch_size" not in found.help
