"""Moves staged files out of `_staging`, which readers ignore, to their final paths, or removes them if they were not committed."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import PurePosixPath

from millstream.clients.storage import Storage
from millstream.connectors.file.write.manifests import ManifestEntry, Manifests, key_of
from millstream.plan.components import Epoch

STAGING = "_staging"


def finish(root: Storage, key: str, *, remove_others: bool) -> None:
    """Clean up staging folders: move the files of a committed epoch to their final paths, and remove the others."""
    manifests = Manifests(root, key)
    for name in root.names(STAGING):
        epoch = re.fullmatch(rf"{re.escape(key)}-(\d+)-[0-9a-f]+", name)
        if epoch is None:
            continue
        folder, held = f"{STAGING}/{name}", manifests.read(int(epoch[1]))
        ours = held is not None and all(step.source.startswith(f"{folder}/") for step in held.files)
        if held is not None and ours:
            move(root, held)
        if ours or remove_others:
            clear(root, folder)


def move(root: Storage, entry: ManifestEntry) -> None:
    for step in entry.files:
        if not root.exists(step.source):  # an earlier run moved it
            continue
        try:
            root.rename(step.source, step.target)
        except OSError:
            if root.exists(step.source):  # otherwise another process moved it
                raise
    root.sync(step.target for step in entry.files if root.exists(step.target))  # before their staging folder is removed


def clear(root: Storage, folder: str) -> None:
    with suppress(FileNotFoundError):
        root.delete(folder)


def final_name(name: str, number: int, epoch: Epoch) -> str:
    """`country=DE/part-00000-….snappy.parquet` → `country=DE/part-out-1f3a…-00000041-00000.snappy.parquet`"""
    path = PurePosixPath(name)
    return str(path.with_name(f"part-{key_of(epoch)}-{epoch.number:08d}-{number:05d}{''.join(path.suffixes)}"))


def is_hidden(name: str) -> bool:
    return PurePosixPath(name).name.startswith(("_", "."))
