"""A directory with what the pages take for granted: some orders, functions of the user, and a model."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.docs.blocks import ROOT

ORDERS = '{"id": 1, "user": "ann", "amount": 1500.0, "at": "2026-01-01T00:00:00Z"}\n{"id": 2, "user": "bob", "amount": 5.0, "at": null}\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in which a page's blocks are files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PGPASSWORD", "x")
    monkeypatch.setenv("KAFKA_PASSWORD", "x")
    (tmp_path / "scoring.py").write_text("def score(batch):\n    return batch\n")
    (tmp_path / "fraud.py").write_text("from millstream import ProcessFunction\n\n\nclass Detector(ProcessFunction): ...\n")
    (tmp_path / "data" / "orders").mkdir(parents=True)
    (tmp_path / "data" / "orders" / "1.json").write_text(ORDERS)
    shutil.copytree(ROOT / "examples" / "15-model", tmp_path, dirs_exist_ok=True)
    return tmp_path
