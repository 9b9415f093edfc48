"""The files of a checkpoint: the pipeline that owns it, the run that uses it, and the epochs that Spark has planned and committed.

<checkpoint>/_millstream/pipeline.json       the pipeline that owns it
<checkpoint>/_millstream/lock                the run that uses it: process and host
<checkpoint>/_millstream/copying             exists while a copy is unfinished
<checkpoint>/_millstream/plans/<query>.json  the plans of its epochs
<checkpoint>/_millstream/nodes/<node>/       files of a node: pinned files, schema
<checkpoint>/_millstream/staged/<query>/     rows of nodes that cannot be computed twice
<checkpoint>/_millstream/incremental/<query>/    the state of incremental nodes: a log of changes, and snapshots
<checkpoint>/_millstream/delivered/<query>.json  which sinks receive every epoch, and since when
<checkpoint>/_millstream/redelivery/         exists during a redelivery
<checkpoint>/queries/<query>/                Spark's checkpoint: offsets, commits, state
<checkpoint>/logs/                           the JVM's logs
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from millstream.checkpoint.lease import Lease, take, writable
from millstream.clients.storage import LocalStorage, Storage, make_private
from millstream.errors import Diagnostic, RunError
from millstream.plan.event_time import FAR_MS

OWN = "_millstream"
UNFINISHED = f"{OWN}/copying"
"""Exists in a checkpoint while it is an unfinished copy."""


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
        """Whether this is the flush epoch, which closes everything at the end of a bounded input."""
        return self.watermark_ms >= FAR_MS


class Checkpoint:
    """One pipeline's progress."""

    def __init__(self, storage: Storage, pipeline: str) -> None:
        self.storage, self.pipeline = storage, pipeline
        self._lease: Lease | None = None

    def claim(self, home: str = "") -> Lease:
        """Take the lease and check that this pipeline owns the checkpoint. `home`: the pipeline's file, if the checkpoint is next to it."""
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
        """Mark a finished query for repetition: until it has planned an epoch, it runs only when `--again` is given."""
        self.storage.put(f"{OWN}/again/{query}", b"")

    def awaits_repetition(self, query: str) -> bool:
        return self.storage.exists(f"{OWN}/again/{query}") and self.query(query).last_planned() < 0 and not self.finished_at(query)

    def require_lease(self) -> None:
        """Raise when another run has taken the lease, for example while this one was paused: this run must not write any more."""
        if self._lease is not None and (owner := self._lease.lost_to()):
            message = f"this run has lost the lease of its checkpoint `{self.storage.url}`; the owner is {owner}"
            raise RunError(Diagnostic("MS157", message, help="if no other run should use it, run again"))

    def query(self, name: str) -> QueryCheckpoint:
        return QueryCheckpoint(self.storage, name)

    def node(self, name: str) -> Storage:
        return self.storage.child(f"{OWN}/nodes/{name}")

    def incremental(self, query: str) -> Storage:
        """The state of a query's incremental nodes."""
        return self.storage.child(f"{OWN}/incremental/{query}")

    def queries(self) -> list[str]:
        """Queries that have progress."""
        return self.storage.names("queries")

    def reset(self, query: str, nodes: list[str]) -> None:
        """Remove a query: its offsets, state and plans, and the pinned files of its sources."""
        self.storage.delete(f"queries/{query}")
        self.storage.delete(f"{OWN}/plans/{query}.json")
        self.storage.delete(f"{OWN}/staged/{query}")
        self.storage.delete(f"{OWN}/finished/{query}.json")
        self.storage.delete(f"{OWN}/delivered/{query}.json")
        self.storage.delete(f"{OWN}/incremental/{query}")
        for node in nodes:
            self.storage.delete(f"{OWN}/nodes/{node}")

    def finished_at(self, query: str) -> str | None:
        """When a bounded query reached its end; None before."""
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
            raise RunError(damage_at(f"{self.storage.url}/{path}", "it is not the JSON that was written")) from None

    def require_whole(self) -> None:
        """Refuse an unfinished copy."""
        if self.storage.exists(UNFINISHED):
            message = f"`{self.storage.url}` is an unfinished copy of a checkpoint: copying was interrupted"
            raise RunError(Diagnostic("MS056", message, help="run the same copy command again"))

    def _identify(self, home: str) -> None:
        self.require_whole()
        path, own = f"{OWN}/pipeline.json", {"pipeline": self.pipeline, "format": 1} | ({"home": home} if home else {})
        if self.storage.put_once(path, json.dumps(own).encode()):
            if self.storage.names("queries"):
                raise RunError(damage_at(self.storage.url, "it holds queries, but not the name of their pipeline"))
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
        """Spark's identifier of the query, made at its first start; empty before."""
        data = self.storage.read("metadata") if not self._id else None
        if data is None:
            return self._id
        try:
            self._id = str(json.loads(data)["id"])
        except (ValueError, KeyError):
            raise RunError(damage_at(f"{self.url}/metadata", "it does not name a query")) from None
        return self._id

    def last_planned(self) -> int:
        """The last planned epoch; -1 when there is none."""
        return self._last("offsets")

    def last_committed(self) -> int:
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
            raise RunError(damage_at(f"{self.url}/{path}", str(error) or "it is cut off")) from None
        digest = hashlib.sha256(data or b"").hexdigest()
        return OffsetEntry(digest, int(metadata["batchTimestampMs"]), offsets, int(metadata.get("batchWatermarkMs", 0)))

    def has_staged(self, epoch: int) -> bool:
        """Whether rows of an epoch are staged in the checkpoint, so that a repetition does not compute them again."""
        return any(name.endswith(f"/{epoch}.json") for name in self.root.files(f"{OWN}/staged/{self.name}"))

    def is_flushed(self) -> bool:
        """Whether the flush epoch has been committed."""
        committed = self.last_committed()
        return committed >= 0 and self.entry(committed).flushes

    def plan_flush(self, time_ms: int) -> bool:
        """Plan the flush epoch: no rows, and a watermark that closes everything. The entry in the offset log is the decision.

        Spark finds a planned epoch that is not committed and runs it, also after a crash. An existing entry was planned after the end of
        the input and never run.
        """
        committed = self.last_committed()
        if committed < 0:
            return False
        version, metadata, *offsets = (self.storage.read(f"offsets/{committed}") or b"").decode().split("\n")
        changed = json.loads(metadata) | {"batchWatermarkMs": FAR_MS, "batchTimestampMs": time_ms}
        self.storage.put(f"offsets/{committed + 1}", "\n".join([version, json.dumps(changed), *offsets]).encode())
        return True

    def examine(self) -> None:
        """Read the files that a start needs, so that damage is found before anything runs."""
        planned, committed = self.last_planned(), self.last_committed()
        if planned >= 0:
            if not self.query_id():
                raise RunError(damage_at(f"{self.url}/metadata", "it is missing"))
            self.entry(planned)
        if committed > planned:
            raise RunError(damage_at(f"{self.url}/offsets", f"epoch {committed} is committed and was never planned"))
        if committed >= 0 and not (self.storage.read(f"commits/{committed}") or b"").startswith(b"v"):
            raise RunError(damage_at(f"{self.url}/commits/{committed}", "it is empty or cut off"))

    def _last(self, folder: str) -> int:
        return max((int(name) for name in self.storage.names(folder) if name.isdigit()), default=-1)


def damage_at(place: str, reason: str) -> Diagnostic:
    help_ = "restore the checkpoint from a copy, or start the query anew with `--reset QUERY`"
    return Diagnostic("MS052", f"the checkpoint file `{place}` is damaged: {reason}", help=help_)
