"""Rows that cannot be computed twice are written once: as Parquet in the checkpoint, with a put-once manifest that decides which files
count.

Every later reader (another sink, or the same epoch after a crash) reads the files in the manifest. Staged epochs are removed when a later
epoch is staged: a committed epoch is never read again.
"""

from __future__ import annotations

import json
import uuid

from pyspark.sql import DataFrame

from millstream.checkpoint.layout import OWN, Checkpoint
from millstream.errors import Diagnostic, RunError


def stage_once(
    frame: DataFrame, checkpoint: Checkpoint, place: tuple[str, str], epoch: int, digest: str, *, anew: bool = False
) -> DataFrame:
    """The frame's rows as the first writer stored them, unless `anew`. `place` is the query and its node; `digest` is that of the
    epoch's plan.
    """
    query, node = place
    storage = checkpoint.storage.child(f"{OWN}/staged/{query}/{node}")
    if anew:
        storage.delete(f"{epoch}.json")
    manifest = storage.read(f"{epoch}.json")
    if manifest is None:
        attempt = f"{epoch}-{uuid.uuid4().hex[:8]}"
        frame.write.parquet(f"{storage.url}/{attempt}")
        storage.sync(f"{attempt}/{name}" for name in storage.files(attempt))
        storage.put_once(f"{epoch}.json", json.dumps({"folder": attempt, "digest": digest}).encode())
        manifest = storage.read(f"{epoch}.json") or b"{}"
        for name in storage.names():
            if int(name.split("-")[0].split(".")[0]) < epoch - 1:
                storage.delete(name)
    staged = json.loads(manifest)
    if staged.get("digest", digest) != digest:
        message = f"the checkpoint holds rows of `{node}` for epoch {epoch}, computed when that epoch had another plan"
        help_ = f"restore the checkpoint as a whole, or `--reset {query}` with empty targets"
        raise RunError(Diagnostic("MS055", message, detail="nothing was written", help=help_))
    return frame.sparkSession.read.schema(frame.schema).parquet(f"{storage.url}/{staged['folder']}")
