"""Plugins reach workers that have neither Millstream nor the plugin's package: they are pickled here, and run in a bare interpreter."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import zipfile
import zipimport
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa
import pytest
from pydantic import BaseModel, field_validator
from pydantic_core import PydanticCustomError
from tests.plugins.shelf import Numbers, NumbersReader, Plus, SqliteSink, Tally, Times
from tests.worker.test_workers_without_millstream import BARE

import millstream
from millstream.jvm.pickling import by_value
from millstream.plan.components.shipping import for_workers
from millstream.registry.loading import own_modules
from millstream.secrets import Secret
from millstream.worker.plugin_runners import BatchObserver, SinkWriter, TransformCall
from millstream.worker.plugin_tasks import Task, WriteTask

NUMBERS = pa.schema([("n", pa.int64())])
BATCH = pa.RecordBatch.from_pydict({"n": [1, 2, 3]}, schema=NUMBERS)
WITHOUT_TESTS = BARE.replace('"millstream"', '"millstream" or name.partition(".")[0] == "tests"')


def run_bare(job: Any, plugin: type, folder: Path) -> str:
    from pyspark import cloudpickle

    with by_value(*own_modules(plugin), function=plugin, directory=folder):
        (folder / "job").write_bytes(cloudpickle.dumps(job))
    done = subprocess.run([sys.executable, "-c", WITHOUT_TESTS, str(folder / "job")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_transform_runs_there(tmp_path: Path) -> None:
    call = TransformCall(for_workers(Times(factor=5), "process").process, Task("node", NUMBERS))
    assert run_bare(lambda: call(BATCH).column("m").to_pylist(), Times, tmp_path) == "[5, 10, 15]"


def test_a_sink_runs_there(tmp_path: Path) -> None:
    writer = SinkWriter(for_workers(SqliteSink(path="x"), "write").write, WriteTask("node", NUMBERS), str(tmp_path))
    said = run_bare(
        lambda: [(row["rows"], len(row["message"]) > 0) for each in writer.run([BATCH]) for row in each.to_pylist()], SqliteSink, tmp_path
    )
    assert said == "[(3, True)]"


def test_a_function_and_a_side_output_run_there(tmp_path: Path) -> None:
    plus = Plus(amount=7).for_workers()
    assert run_bare(lambda: plus(BATCH.column("n")).to_pylist(), Plus, tmp_path) == "[8, 9, 10]"
    observer = BatchObserver(for_workers(Tally(), "observe").observe, Task("node", NUMBERS), str(tmp_path), ("n",))
    assert run_bare(lambda: sum(each.num_rows for each in observer.run([BATCH])), Tally, tmp_path) == "3"


@pytest.mark.parametrize(
    "runner",
    [
        SinkWriter(SqliteSink(path="x").write, WriteTask("node", NUMBERS), "."),
        BatchObserver(Tally().observe, Task("node", NUMBERS), ".", ("n",)),
    ],
    ids=["sink", "side output"],
)
def test_a_task_leaves_no_archives_for_the_next_one(runner: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "pyspark.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("x.py", "")
    monkeypatch.setitem(sys.path_importer_cache, str(archive), zipimport.zipimporter(str(archive)))
    assert len(list(runner.run([BATCH]))) == 1
    assert str(archive) not in sys.path_importer_cache


def test_a_reader_runs_there(tmp_path: Path) -> None:
    reader = NumbersReader(4)
    assert run_bare(lambda: [each.to_pydict() for each in reader.read((1, 4))], Numbers, tmp_path) == "[{'n': [1, 2, 3]}]"


class Login(BaseModel):
    user: str
    password: Secret


@millstream.plugin("test.nested")
class Nested(millstream.ArrowTransform):
    login: Login
    limit: int = 3
    unit: str = "rows"

    @property
    def shown(self) -> str:
        return f"{self.login.user} {self.login.password!r} {self.login.password.reveal()} {self.limit} {self.unit}"

    @staticmethod
    def loud(text: str) -> str:
        return text.upper()

    def process(self, batch: pa.RecordBatch, task: millstream.Task) -> Any:
        return self.loud(self.shown)


def test_options_secrets_and_helpers_are_there(tmp_path: Path) -> None:
    plain = for_workers(Nested(login=Login(user="ann", password=Secret("horse"))), "process")
    assert run_bare(lambda: plain.process(None, None), Nested, tmp_path) == "ANN *** HORSE 3 ROWS"


class Account(Login):
    scheme: ClassVar[dict[str, str]] = {"ann": "https"}

    @field_validator("user")
    @classmethod
    def _known(cls, user: str) -> str:
        if user != "ann":
            raise PydanticCustomError("unknown", "who is that?")
        return user

    def address(self) -> str:
        return f"{self.scheme[self.user]}://{self.user}"


class Span(NamedTuple):
    first: int
    last: int = 9


@millstream.plugin("test.rich")
class Rich(millstream.ArrowTransform):
    table: ClassVar[dict[str, int]] = {"a": 1}
    pattern: ClassVar[re.Pattern[str]] = re.compile(r"\d+")
    model_file: ClassVar[Path] = Path("model.bin")
    ways: ClassVar[dict[str, Any]] = {"up": lambda number: number + 1, "kind": Span, "module": re}
    lock: ClassVar[Any] = threading.Lock()
    account: Account
    span: Span = Span(1)
    keys: frozenset[Secret] = frozenset()

    @staticmethod
    @cache
    def twice(number: int) -> int:
        return number * 2

    def process(self, batch: pa.RecordBatch, task: millstream.Task) -> Any:
        found = self.pattern.findall("a1b22")
        return [
            self.table["a"],
            found,
            str(self.model_file),
            self.account.address(),
            self.span.last,
            self.twice(4),
            self.ways["up"](1),
            *self._revealed(),
        ]

    def _revealed(self) -> list[str]:
        return sorted(key.reveal() for key in self.keys)


def test_constants_of_classes_nested_options_and_their_methods_are_there(tmp_path: Path) -> None:
    account = Account(user="ann", password=Secret("horse"))
    plain = for_workers(Rich(account=account, keys=frozenset({Secret("b"), Secret("a")})), "process")
    expected = [1, ["1", "22"], "model.bin", "https://ann", 9, 8, 2, "a", "b"]
    assert run_bare(lambda: plain.process(None, None), Rich, tmp_path) == str(expected)


def test_a_lock_of_the_class_stays_on_the_driver() -> None:
    assert not hasattr(for_workers(Rich(account=Account(user="ann", password=Secret("horse"))), "process"), "lock")


def test_the_options_class_itself_does_not_run_there(tmp_path: Path) -> None:
    """The control: without the plain object, the worker would need Millstream."""
    times = Times(factor=5)
    with pytest.raises(AssertionError, match="there is no millstream here"):
        run_bare(lambda: times.process(BATCH, None), Times, tmp_path)
