"""What travels to workers needs no Millstream there: it is pickled here, and runs in an interpreter that cannot import it."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from millstream import errors, worker
from millstream.connectors.kafka import worker as kafka_worker
from millstream.connectors.postgres import worker as postgres_worker
from millstream.jvm.pickling import by_value
from millstream.plan.expressions import Expr
from millstream.worker.batches import BatchRunner

BARE = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "millstream":
            raise ImportError("there is no millstream here: " + name)

sys.meta_path.insert(0, Absent())
sys.path[:] = [path for path in sys.path if not path.endswith("/src")]
import pickle
with open(sys.argv[1], "rb") as file:
    job = pickle.load(file)
print(job())
"""
PACKAGES = (worker, kafka_worker, postgres_worker)


def members(package: ModuleType) -> list[object]:
    """Every function and class of a package."""
    names = [name for _, name, _ in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")]
    modules = [importlib.import_module(name) for name in names]
    return [value for module in modules for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__]


def run_bare(job: object, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "job").write_bytes(cloudpickle.dumps(job))
    return subprocess.run([sys.executable, "-c", BARE, str(folder / "job")], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_everything_in_the_package_arrives(package: ModuleType, tmp_path: Path) -> None:
    found = members(package)
    with by_value(kafka_worker, postgres_worker):
        done = run_bare(lambda: len(found), tmp_path)
    assert done.stdout.strip() == str(len(found)), done.stderr
    assert len(found) > 2


def test_a_batch_runner_runs_there(tmp_path: Path) -> None:
    schema = pa.schema([("x", pa.int64())])
    runner = BatchRunner(lambda batch: batch.slice(0, 2), "step", schema, None, False, str(tmp_path))
    batch = pa.RecordBatch.from_pydict({"x": [1, 2, 3]})
    with by_value(function=runner.run, directory=tmp_path):
        done = run_bare(lambda: [each.to_pydict() for each in runner.run([batch])], tmp_path)
    assert done.stdout.strip() == "[{'x': [1, 2]}]", done.stderr


def test_what_is_not_of_the_package_does_not_arrive(tmp_path: Path) -> None:
    """The control: anything else of Millstream is a reference, which leads nowhere there."""
    with by_value():
        done = run_bare(lambda: Expr, tmp_path)
    assert "there is no millstream here: millstream" in done.stderr


def test_errors_travel_too(tmp_path: Path) -> None:
    with by_value():
        done = run_bare(lambda: errors.Diagnostic("MS001", "said").render(), tmp_path)
    assert done.stdout.strip() == "error[MS001]: said", done.stderr
