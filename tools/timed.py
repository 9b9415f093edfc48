"""Run named parts one after the other and print how long each took; all of them run, and any failure fails the whole."""

from __future__ import annotations

import subprocess
import sys
import time


def main(arguments: list[str]) -> int:
    """`timed NAME COMMAND NAME COMMAND …`"""
    results: list[tuple[str, int, float]] = []
    for name, command in zip(arguments[::2], arguments[1::2], strict=True):
        print(f"\n== {name}", flush=True)
        started = time.monotonic()
        code = subprocess.run(["bash", "-c", command], check=False).returncode
        results.append((name, code, time.monotonic() - started))
    print("\n== time")
    for name, code, seconds in results:
        print(f"  {seconds:7.1f} s  {name}{'' if code == 0 else '  FAILED'}")
    return max(code for _, code, _ in results) and 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
