"""The peer's side: messages above a limit, counted by their key in its state store."""

from __future__ import annotations

import json
import sys
import tempfile
from typing import Any

from quixstreams import Application


def main(address: str, rows: int) -> None:
    folder = tempfile.mkdtemp()
    app = Application(broker_address=address, consumer_group="bench", auto_offset_reset="earliest", state_dir=folder, loglevel="WARNING")
    counts: dict[str, int] = {}

    def count(value: dict[str, Any], state: Any) -> int:
        number = int(state.get("n", 0)) + 1
        state.set("n", number)
        counts[value["country"]] = number
        return number

    frame = app.dataframe(app.topic("rows", value_deserializer="json", key_deserializer="str"))
    frame = frame[frame["amount"] > 500]
    frame.apply(count, stateful=True)
    app.run(timeout=10)  # it ends when nothing has come for so long
    print(json.dumps(counts))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
