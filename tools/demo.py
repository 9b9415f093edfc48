"""`make demo`: a real pipeline end to end, and what happened in words that a newcomer understands."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

PIPELINE = "examples/00-demo/orders.yaml"
OUT = Path("out/demo")


def main() -> int:
    shutil.rmtree(OUT, ignore_errors=True)
    _say("1. The pipeline", f"{PIPELINE}: 200,000 made-up orders → SQL → a Python function → Parquet files and this terminal.\n")
    _millstream("graph", PIPELINE, "--format", "tree")
    _say("2. Running it on Spark", "The first start takes longer: a class archive is made once, in your cache directory.\n")
    code = _millstream("run", PIPELINE)
    if code:
        return code
    _say("3. What is there now", _contents())
    _say("4. Running it again", "The input has ended and every row is committed, so nothing is read or written twice:\n")
    _millstream("run", PIPELINE)
    _say("Next", "  source .venv/bin/activate")
    print("  millstream init shop && millstream run shop.yaml      a pipeline of your own")
    print("  millstream doctor                                     is this machine fit?")
    return 0


def _contents() -> str:
    import pyarrow.compute as pc

    from millstream import committed_files, read_committed

    files, table = committed_files(str(OUT / "orders")), read_committed(str(OUT / "orders"))
    review = pc.sum(pc.equal(table["risk"], "review")).as_py()
    lines = [f"{OUT}/orders holds {table.num_rows:,} orders in {len(files)} committed Parquet files, one folder per country:"]
    lines += [f"  {name}" for name in sorted({Path(file).parent.name for file in files})]
    return "\n".join([*lines, f"{review:,} of them are marked for review by the Python step."])


def _millstream(*arguments: str) -> int:
    print(f"$ millstream {' '.join(arguments)}", flush=True)
    return subprocess.run([sys.executable, "-m", "millstream.cli", *arguments], check=False).returncode


def _say(title: str, text: str) -> None:
    print(f"\n\x1b[1m{title}\x1b[0m\n{text}" if sys.stdout.isatty() else f"\n{title}\n{text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
