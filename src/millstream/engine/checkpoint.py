"""Everything that touches a checkpoint: whose it is, who uses it now, what Spark has planned and committed in it.

<checkpoint>/_millstream/pipeline.json       whose progress this is
<checkpoint>/_millstream/lock                the run that uses it: process and host
<checkpoint>/_millstream/copying             there while it is half a copy of another one
<checkpoint>/_millstream/plans/<query>.json  the plans that its epochs were made with
<checkpoint>/_millstream/nodes/<node>/       what a node keeps: pinned files, schema
<checkpoint>/_millstream/staged/<query>/     rows of nodes that cannot be computed twice
<checkpoint>/_millstream/delivered/<query>.json  which sinks receive every epoch, and since when
<checkpoint>/_millstream/redelivery/         there while missing epochs are delivered again
<checkpoint>/queries/<query>/                Spark's own: offsets, commits, state
<checkpoint>/logs/                           the JVM's logs
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from millstream.clients.storage import LocalStorage, Storage, make_private
from millstream.engine.lease import Lease, take, writable
from millstream.errors import Diagnostic, RunError
from millstream.plan.time import FAR_MS

OWN = "_millstream"
UNFINISHED = f"{OWN}/copying"
"""Stands in a checkpoint as long as it is half a copy."""


@dataclass(frozen=True, slots=True)
class OffsetEntry:
    """One planned epoch in Spark's offset log."""

    digest: str
    time_ms: int
    offsets: tuple[Any, ...]
    """One per source, in the order of the plan; None where a source has none."""
    watermark_ms: int = 0

    @property
    def flushes(self) -> bool:
        """Whether the epoch is the one that closes everything at the end of a bounded input."""
        return self.watermark_ms >= FAR_MS


class Checkpoint:
    """One pipeline's progress."""

    def __init__(self, storage: Storage, pipeline: str) -> None:
        self.storage, self.pipeline = storage, pipeline
        self._lease: Lease | None = None

    def claim(self, home: str = "") -> Lease:
        """Take the lease and make sure that the progress is this pipeline's. `home`: the pipeline's file, where it lies beside that."""
        if isinstance(self.storage, LocalStorage):
            with writable(self.storage.url):
                for folder in (self.storage.root, self.storage.root / "queries"):
                    make_private(folder)
        lease = take(self.storage.child(OWN), self.storage.url)
        try:
            self._identify(home)
        except BaseException:
            lease.release()
            raise
        self._lease = lease
        return lease

    def begin_again(self, query: str) -> None:
        """A finished query is about to be repeated: until it has planned an epoch, only whoever asks for that may run it."""
        self.storage.put(f"{OWN}/again/{query}", b"")

    def awaits_repetition(self, query: str) -> bool:
        return self.storage.exists(f"{OWN}/again/{query}") and self.query(query).planned() < 0 and not self.finished(query)

    def require_lease(self) -> None:
        """Another run may have taken over from one that was paused or cut off: that one must write no more."""
        if self._lease is not None and (owner := self._lease.lost()):
            message = f"this run has lost its checkpoint `{self.storage.url}`; it belongs to {owner}"
            raise RunError(Diagnostic("MS157", message, help="if no other run is meant to use it, run again"))

    def query(self, name: str) -> QueryCheckpoint:
        return QueryCheckpoint(self.storage, name)

    def node(self, name: str) -> Storage:
        return self.storage.child(f"{OWN}/nodes/{name}")

    def queries(self) -> list[str]:
        """Queries that progress is kept of."""
        return self.storage.names("queries")

    def reset(self, query: str, nodes: list[str]) -> None:
        """Forget a query: its offsets and state, its plans, and what its sources pinned."""
        self.storage.delete(f"queries/{query}")
        self.storage.delete(f"{OWN}/plans/{query}.json")
        self.storage.delete(f"{OWN}/staged/{query}")
        self.storage.delete(f"{OWN}/finished/{query}.json")
        self.storage.delete(f"{OWN}/delivered/{query}.json")
        for node in nodes:
            self.storage.delete(f"{OWN}/nodes/{node}")

    def finished(self, query: str) -> str | None:
        """When a bounded query came to its end."""
        data = self.read_json(f"{OWN}/finished/{query}.json")
        return data["at"] if data else None

    def finish(self, query: str, at: str) -> None:
        self.storage.put_once(f"{OWN}/finished/{query}.json", json.dumps({"at": at}).encode())
        self.storage.delete(f"{OWN}/again/{query}")

    def read_json(self, path: str) -> Any:
        data = self.storage.read(path)
        if data is None:
            return None
        try:
            return json.loads(data)
        except ValueError:
            raise RunError(damaged(f"{self.storage.url}/{path}", "it is not the JSON that was written")) from None

    def require_whole(self) -> None:
        """Refuse what is left of a copy that was not finished."""
        if self.storage.exists(UNFINISHED):
            message = f"`{self.storage.url}` is half a copy of a checkpoint: copying was cut short"
            raise RunError(Diagnostic("MS056", message, help="make the copy again, with the same command"))

    def _identify(self, home: str) -> None:
        self.require_whole()
        path, own = f"{OWN}/pipeline.json", {"pipeline": self.pipeline, "format": 1} | ({"home": home} if home else {})
        if self.storage.put_once(path, json.dumps(own).encode()):
            if self.storage.names("queries"):
                raise RunError(damaged(self.storage.url, "it holds queries, and not the name of their pipeline"))
            return
        found = self.read_json(path)
        owner = found.get("pipeline")
        if owner != self.pipeline:
            message = f"the checkpoint `{self.storage.url}` belongs to pipeline `{owner}`, not to `{self.pipeline}`"
            raise RunError(Diagnostic("MS051", message, help=f"use another `settings.checkpoint`, or name the pipeline `{owner}` again"))
        if home and found.get("home") != home:
            self.storage.put(path, json.dumps(own).encode())


class QueryCheckpoint:
    """Spark's part of a checkpoint, for one query."""

    def __init__(self, root: Storage, name: str) -> None:
        self.name, self.root = name, root
        self.storage = root.child(f"queries/{name}")
        self._id = ""

    @property
    def url(self) -> str:
        return self.storage.url

    def query_id(self) -> str:
        """Spark's identity of the query, made at its first start; empty before."""
        data = self.storage.read("metadata") if not self._id else None
        if data is None:
            return self._id
        try:
            self._id = str(json.loads(data)["id"])
        except (ValueError, KeyError):
            raise RunError(damaged(f"{self.url}/metadata", "it does not name a query")) from None
        return self._id

    def planned(self) -> int:
        """The last epoch that Spark has planned; -1 when there is none."""
        return self._last("offsets")

    def committed(self) -> int:
        return self._last("commits")

    def entry(self, epoch: int) -> OffsetEntry:
        """One epoch of the offset log."""
        path = f"offsets/{epoch}"
        data = self.storage.read(path)
        try:
            lines = (data or b"").decode().split("\n")
            if lines[0] != "v1":
                raise ValueError(f"it starts with `{lines[0][:20]}` instead of `v1`")
            metadata = json.loads(lines[1])
            offsets = tuple(None if line == "-" else json.loads(line) for line in lines[2:] if line)
        except (ValueError, IndexError, UnicodeDecodeError) as error:
            raise RunError(damaged(f"{self.url}/{path}", str(error) or "it is cut off")) from None
        digest = hashlib.sha256(data or b"").hexdigest()
        return OffsetEntry(digest, int(metadata["batchTimestampMs"]), offsets, int(metadata.get("batchWatermarkMs", 0)))

    def has_staged(self, epoch: int) -> bool:
        """Whether rows of an epoch are kept in the checkpoint, so that a repetition does not compute them again."""
        return any(name.endswith(f"/{epoch}.json") for name in self.root.files(f"{OWN}/staged/{self.name}"))

    def flushed(self) -> bool:
        """Whether the end of a bounded input has been committed."""
        committed = self.committed()
        return committed >= 0 and self.entry(committed).flushes

    def plan_flush(self, time_ms: int) -> bool:
        """Plan one more epoch with no rows and a watermark that closes everything: the offset log's entry is the decision.

        Spark finds a planned epoch that is not committed and runs it, again after a crash. An entry that stands there already was
        planned after the end of the input and never run.
        """
        committed = self.committed()
        if committed < 0:
            return False
        version, metadata, *offsets = (self.storage.read(f"offsets/{committed}") or b"").decode().split("\n")
        changed = json.loads(metadata) | {"batchWatermarkMs": FAR_MS, "batchTimestampMs": time_ms}
        self.storage.put(f"offsets/{committed + 1}", "\n".join([version, json.dumps(changed), *offsets]).encode())
        return True

    def examine(self) -> None:
        """Read what a start relies on, so that damage is found before anything runs."""
        planned, committed = self.planned(), self.committed()
        if planned >= 0:
            if not self.query_id():
                raise RunError(damaged(f"{self.url}/metadata", "it is missing"))
            self.entry(planned)
        if committed > planned:
            raise RunError(damaged(f"{self.url}/offsets", f"epoch {committed} is committed and was never planned"))
        if committed >= 0 and not (self.storage.read(f"commits/{committed}") or b"").startswith(b"v"):
            raise RunError(damaged(f"{self.url}/commits/{committed}", "it is empty or cut off"))

    def _last(self, folder: str) -> int:
        return max((int(name) for name in self.storage.names(folder) if name.isdigit()), default=-1)


def damaged(place: str, reason: str) -> Diagnostic:
    help_ = "restore the checkpoint from a copy, or start the query anew with `--reset QUERY`"
    return Diagnostic("MS052", f"the checkpoint file `{place}` is damaged: {reason}", help=help_)
