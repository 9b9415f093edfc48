"""A pipeline in a process of its own, told where to die, and started again until it has come to its end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("MILLSTREAM_KILLS") or 0)
"""How many deaths `make chaos` asks for; 0: the short sample of `make test`."""
SEED = int(os.environ.get("MILLSTREAM_SEED") or 7)
START = "MILLSTREAM_START"
"""A variable of the victim's environment: how often it has been started."""


def chance_of_start() -> random.Random:
    """What a victim does by chance: the same for the same seed and start."""
    return random.Random(f"{SEED} {os.environ.get(START)}")


def chosen(chance: random.Random, sample: Sequence[str], kinds: Sequence[str]) -> list[str]:
    """What dies, one after the other: the sample, or as many as were asked for, every kind as often as the others."""
    if not KILLS:
        return chance.sample(sample, len(sample))
    rounds = [chance.sample(kinds, len(kinds)) for _ in range(0, KILLS, len(kinds))]
    return [kind for each in rounds for kind in each][:KILLS]


@dataclass
class Arena:
    """One pipeline, and what is done to it."""

    folder: Path
    script: str
    """The victim's program, beside this file."""
    variant: str = ""
    victim: subprocess.Popen[bytes] | None = None
    starts: int = 0

    def write(self, pipeline: str) -> None:
        (self.folder / "deaths").mkdir()
        (self.folder / "p.yaml").write_text(pipeline)

    def live(self) -> None:
        """See to it that the pipeline runs, or has come to its end."""
        code = None if self.victim is None else self.victim.poll()
        if self.victim is not None and code in {None, 0}:
            return
        assert code in {None, -signal.SIGKILL} and self.starts < KILLS + 20, self.log()
        self.starts += 1
        with (self.folder / "log").open("ab") as log:
            script = Path(__file__).with_name(self.script)
            command = [sys.executable, str(script), str(self.folder / "p.yaml"), str(self.folder / "deaths"), self.variant]
            environment = {**os.environ, "MILLSTREAM_SEED": str(SEED), START: str(self.starts)}
            self.victim = subprocess.Popen(command, stdout=log, stderr=log, cwd=ROOT, env=environment)

    def log(self) -> str:
        return (self.folder / "log").read_text()[-3000:]

    def stop(self) -> None:
        if self.victim is not None and self.victim.poll() is None:
            self.victim.kill()

    def order(self, death: str, seconds: float = 400) -> None:
        """Have something die, and wait until it has."""
        token, deadline = self.folder / "deaths" / death, time.monotonic() + seconds
        token.touch()
        while token.exists():
            self.live()
            assert self.victim is not None and self.victim.poll() != 0, f"the pipeline came to its end before `{death}`"
            assert time.monotonic() < deadline, f"nobody has died of `{death}`"
            time.sleep(0.05)

    def progress(self, epochs: int, seconds: float = 400) -> None:
        """Leave it alone until so many more epochs are done."""
        target, deadline = self.done() + epochs, time.monotonic() + seconds
        while self.done() < target:
            self.live()
            assert time.monotonic() < deadline, f"no progress:\n{self.log()}"
            time.sleep(0.05)

    def done(self) -> int:
        """The epochs of all queries that Spark has committed."""
        queries = (self.folder / "checkpoint/queries").glob("*/commits")
        return sum(max((int(file.name) for file in commits.glob("[0-9]*")), default=-1) + 1 for commits in queries)

    def end(self, seconds: float = 600) -> None:
        deadline = time.monotonic() + seconds
        while self.victim is None or self.victim.poll() != 0:
            self.live()
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.1)


def ordered(deaths: str, name: str) -> bool:
    """Whether to die here. An order is obeyed once."""
    try:
        Path(deaths, name).unlink()
    except FileNotFoundError:
        return False
    return True
