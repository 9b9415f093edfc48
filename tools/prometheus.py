"""Unpacks Prometheus from its Debian package into `.make/prometheus`, where that is possible: the metrics, alerts and the dashboard are
tried with it. Nothing is installed, and no service starts.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent.parent / ".make" / "prometheus"


def find(name: str) -> str | None:
    """The path of `prometheus` or `promtool`."""
    unpacked = FOLDER / "usr" / "bin" / name
    return str(unpacked) if unpacked.exists() else shutil.which(name)


def main() -> None:
    if find("prometheus"):
        return
    with tempfile.TemporaryDirectory() as folder:
        if shutil.which("apt-get") is None or not (_download(folder) or (_update() and _download(folder))):
            print("there is no prometheus, and it cannot be fetched here: the tests of alerts and dashboard are left out")
            return
        package = next(Path(folder).glob("prometheus_*.deb"))
        print("unpacking prometheus, for the tests of alerts and dashboard")
        FOLDER.mkdir(parents=True, exist_ok=True)
        subprocess.run(["dpkg", "-x", str(package), str(FOLDER)], check=True)


def _download(folder: str) -> bool:
    return _quiet(["apt-get", "download", "prometheus"], folder) and any(Path(folder).glob("prometheus_*.deb"))


def _update() -> bool:
    return os.getuid() == 0 and _quiet(["apt-get", "update"], None)


def _quiet(command: list[str], folder: str | None) -> bool:
    return subprocess.run(command, cwd=folder, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


if __name__ == "__main__":
    main()
