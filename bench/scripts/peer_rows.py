"""Two million events as JSON lines in four files, for every tool that is compared."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

ROWS, KEYS, FILES = 2_000_000, 100, 4


def main(folder: Path) -> None:
    dice = np.random.default_rng(5)
    at = 1_704_067_200_000 + np.arange(ROWS) // 20 + dice.integers(0, 1000, ROWS)
    keys, values = dice.integers(0, KEYS, ROWS), dice.integers(0, 100, ROWS)
    folder.mkdir(parents=True)
    for number in range(FILES):
        part = slice(number * ROWS // FILES, (number + 1) * ROWS // FILES)
        rows = zip(keys[part].tolist(), values[part].tolist(), at[part].tolist(), strict=True)
        text = "".join(f'{{"key": {key}, "value": {value}, "at": {time}}}\n' for key, value, time in rows)
        (folder / f"{number}.json").write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
