"""The map for agents leads to files that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PATH = re.compile(r"`((?:[a-z_*]+/)*[a-z_*]+(?:\.py|\.md|/))`")


def test_every_path_of_the_map_exists() -> None:
    missing = []
    for line in (ROOT / "AGENTS.md").read_text(encoding="utf-8").splitlines():
        folders = [ROOT, ROOT / "src/millstream"]
        for path in PATH.findall(line):
            found = [match for folder in folders for match in folder.glob(path.rstrip("/"))]
            missing += [] if found else [path]
            folders += [match if match.is_dir() else match.parent for match in found]  # further names in a line are beside the first
    assert missing == []
