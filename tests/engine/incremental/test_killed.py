"""An incremental query is killed at every step of the protocol, and while a snapshot is written: what sinks hold is the batch answer.

Sums of floating-point numbers and ties may come out otherwise when they are computed again, and the sinks hold whole rows: a change that
removes another row than the one that was delivered would be seen. Without the written state the result is wrong.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engine.incremental.sabotage import SNAPSHOT, STEPS, kill

from millstream import committed_files
from millstream.engine.incremental.maintenance import Maintenance
from millstream.observe.report import Report
from millstream.spec.files import load_pipeline

pytestmark = pytest.mark.spark
PIPELINE = """
sources:
  t:
    {type: file, path: in, format: json, schema: {k: string, id: int64, v: int64, d: float64}, mode: {type: bounded},
     max_files_per_epoch: 1}
transforms:
  q: {type: sql, sql: "SELECT sum(d) AS s, max_by(id, v) AS best, count(DISTINCT v) AS n FROM t GROUP BY k"}
sinks:
  one: {type: file, from: q, path: out/one, format: json}
  two: {type: file, from: q, path: out/two, format: json}
"""
ROWS = [{"k": "abc"[i % 3], "id": i, "v": i % 4, "d": 0.1 * i + 1e6 * (i % 2)} for i in range(60)]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose run was killed in each of its epochs but the last, at another step each time."""
    folder = tmp_path_factory.mktemp("killed")
    (folder / "p.yaml").write_text(PIPELINE)
    (folder / "in").mkdir()
    for number in range(5):
        path = folder / f"in/{number}.json"
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS[number * 12 : number * 12 + 12]))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    for epoch, step in enumerate(STEPS):
        kill(folder, step, epoch)
    kill(folder, SNAPSHOT, len(STEPS) - 1)  # the epoch that is repeated
    (half,) = (folder / ".millstream/p/_millstream/incremental/q/snapshots").iterdir()
    assert half.is_dir() and half.name.startswith(f"{len(STEPS) - 1}-")
    return folder


def changes(folder: Path, sink: str) -> list[dict[str, Any]]:
    files = committed_files(str(folder / "out" / sink))
    return [json.loads(line) for file in files for line in Path(file).read_text().splitlines()]


def applied(rows: list[dict[str, Any]]) -> Counter[tuple[float, int]]:
    """The groups after all changes, with their sum of whole rows; None where a row is removed that is not there."""
    table: Counter[str] = Counter()
    for row in rows:
        text = json.dumps([row["s"], row["best"], row["n"]])
        table[text] += 1 if row["_op"] == "i" else -1
    wrong = [text for text, count in table.items() if count < 0]
    assert not wrong, f"removed and not there: {wrong}"
    return Counter((round(json.loads(text)[0], 3), json.loads(text)[2]) for text in (+table).elements())


def expected() -> Counter[tuple[float, int]]:
    groups = [[row for row in ROWS if row["k"] == k] for k in "abc"]
    return Counter((round(sum(float(str(row["d"])) for row in group), 3), len({row["v"] for row in group})) for group in groups)


def finish(folder: Path, copy: Path, run: Callable[..., Report], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run to the end, from the state as the last kill left it, which `copy` keeps."""
    if copy.exists():
        shutil.rmtree(folder)
        shutil.copytree(copy, folder)
    else:
        shutil.copytree(folder, copy)
    monkeypatch.chdir(folder)
    run(load_pipeline(folder / "p.yaml"))


def test_what_sinks_hold_is_the_batch_answer(killed: Path, run: Callable[..., Report], monkeypatch: pytest.MonkeyPatch) -> None:
    finish(killed, killed.with_name("copy"), run, monkeypatch)
    one, two = changes(killed, "one"), changes(killed, "two")
    assert applied(one) == applied(two) == expected()
    assert Counter(map(str, one)) == Counter(map(str, two))


def test_without_the_written_state_it_is_wrong(killed: Path, run: Callable[..., Report], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Maintenance, "_restored", lambda self, epoch: self.view.empty_version())
    finish(killed, killed.with_name("copy"), run, monkeypatch)
    assert applied(changes(killed, "one")) != expected()
