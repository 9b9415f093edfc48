"""A full disk while writing: a clear error, nothing visible; with room again the epoch is repeated and every row is there once."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark
PIPELINE = """
sources: {g: {type: generator, rows: 400_000, fields: {id: {type: sequence}, x: {type: uuid}}}}
sinks: {out: {type: file, from: g, path: disk/out, format: json}}
"""
SCRIPT = """
set -e
mount -t tmpfs -o size=4m none disk
set +e
"$1" -m millstream.cli run p.yaml 2> first.txt; echo $? > first.code
"$1" -c 'import millstream; print(len(millstream.committed_files("disk/out")))' > visible.txt
mount -o remount,size=400m disk
"$1" -m millstream.cli run p.yaml --format json > second.json
"$1" - <<'END' > rows.txt
import json, millstream
rows = [json.loads(line)["id"] for file in millstream.committed_files("disk/out") for line in open(file)]
print(len(rows), len(set(rows)))
END
"""


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs `unshare` for a small disk of its own")
def test_a_full_disk_is_said_and_survived(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "p.yaml").write_text(PIPELINE)
    done = subprocess.run(
        ["unshare", "-rm", "bash", "-c", SCRIPT, "-", sys.executable], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (tmp_path / "first.code").read_text().strip() == "1", done.stderr
    first = (tmp_path / "first.txt").read_text()
    assert "MS068" in first
    assert "disk is full" in first
    assert (tmp_path / "visible.txt").read_text().strip() == "0"
    assert json.loads((tmp_path / "second.json").read_text())["state"] == "done"
    assert (tmp_path / "rows.txt").read_text().split() == ["400000", "400000"]
