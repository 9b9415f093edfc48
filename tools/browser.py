"""Installs Chromium from Debian's packages, where that is possible and it is missing: the inspector's page is tried in it."""

from __future__ import annotations

import os
import shutil
import subprocess


def main() -> None:
    if shutil.which("chromium"):
        return
    if os.getuid() != 0 or shutil.which("apt-get") is None:
        print("there is no chromium, and it cannot be installed here: the tests of the inspector's page are left out")
        return
    print("installing chromium, for the tests of the inspector's page")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}}
    for command in (["apt-get", "update"], ["apt-get", "install", "-y", "--no-install-recommends", "chromium"]):
        if subprocess.run(command, check=False, **quiet).returncode:  # type: ignore[call-overload]  # the same arguments for both
            print("chromium could not be installed: the tests of the inspector's page are left out")
            return


if __name__ == "__main__":
    main()
