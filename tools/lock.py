"""Pin every dependency with its hashes: `requirements/run.txt`, `java.txt`, `dev.txt` and `site.txt`, from `pyproject.toml`.

`python -m tools.lock site` pins that file alone.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
BUILD = ["hatchling", "editables"]


def main(names: list[str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    run = [*project["project"]["dependencies"], *BUILD]
    groups = project["dependency-groups"]
    files = {
        "run": (run, ""),
        "java": (project["project"]["optional-dependencies"]["java"], ""),
        "dev": ([*run, *groups["dev"]], "run"),
        "site": (groups["site"], "dev"),
    }
    for name in names or files:
        _compile(name, *files[name])


def _compile(name: str, requirements: list[str], constraint: str = "") -> None:
    target = ROOT / "requirements" / f"{name}.txt"
    command = [sys.executable, "-m", "uv", "pip", "compile", "-", "-o", str(target), "--generate-hashes", "--universal"]
    command += [
        "--python-version",
        "3.11",
        "--no-header",
        "--no-emit-index-url",
        "--no-emit-find-links",
        "--no-annotate",
        "--upgrade",
    ]
    if constraint:
        command += ["-c", str(ROOT / "requirements" / f"{constraint}.txt")]
    subprocess.run(command, input="\n".join(requirements), text=True, check=True, stdout=subprocess.DEVNULL)
    print(f"requirements/{name}.txt")


if __name__ == "__main__":
    main(sys.argv[1:])
