"""Exit 0 when this machine has a Java that Spark runs on; `make` installs one from PyPI otherwise."""

from __future__ import annotations

import os
import sys

from millstream.errors import SetupError
from millstream.jvm.java import find_java


def main() -> int:
    try:
        find_java(os.environ)
    except SetupError:
        print("no usable Java: installing a runtime into the virtual environment")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
