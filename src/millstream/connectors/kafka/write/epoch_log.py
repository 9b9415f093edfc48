"""The driver's log of an epoch, in the sink's folder of the checkpoint.

`<query>/<epoch>.json` is put once, before a lane of a large epoch is opened: where the epoch's rows are, and the number of lanes. A
repetition of the epoch uses exactly those rows, so that two lanes never disagree about a row. A small epoch is one transaction and needs no
such plan. `<query>/done.json` is written when the epoch is committed. It contains each lane's last epoch: a lane without rows has no
transaction, so its marker is an older one. After a claim it names every lane that has a marker.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from millstream.clients.storage import Storage

_DONE = "done.json"


@dataclass(frozen=True, slots=True)
class EpochPlan:
    """An epoch whose rows are fixed."""

    folder: str
    lanes: int
    rows: int
    digest: str
    hash: str = ""
    """A checksum of the messages and their lanes, where a repeated epoch computes them again."""


@dataclass(frozen=True, slots=True)
class Done:
    """The last epoch that all lanes hold."""

    epoch: int = -1
    digest: str = ""
    lanes: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Lane → its last epoch, and its time."""
    rested: bool = False
    """Whether the last run ended when no epoch was half written."""
    run: str = ""
    """The name under which the lanes were last claimed; empty: by an older version."""

    def holds(self, epoch: int, digest: str) -> bool:
        return (self.epoch, self.digest) == (epoch, digest)

    def expected_epochs(self) -> dict[int, int]:
        return {int(lane): epoch for lane, (epoch, _) in self.lanes.items()}

    def younger(self, seconds: float) -> frozenset[int]:
        """Lanes that have written within this time."""
        return frozenset(int(lane) for lane, (_, at) in self.lanes.items() if time.time() - at < seconds)


class EpochLog:
    """The log of one query's sink. The run that has the lease is its only writer, so what is done is read once."""

    def __init__(self, storage: Storage, query: str) -> None:
        self.storage = storage.child(query)
        self._done: Done | None = None
        self._has_leftovers = True
        """Whether there may be plans and rows of earlier epochs."""

    def plan(self, epoch: int) -> EpochPlan | None:
        found = self._read(f"{epoch}.json")
        return EpochPlan(**found) if found else None

    def open_plan(self, epoch: int, digest: str) -> EpochPlan | None:
        """The plan of an epoch, unless the epoch is done: a plan may have been put late, by a driver that no longer has the lease."""
        return None if self.done().holds(epoch, digest) else self.plan(epoch)

    def put_once(self, epoch: int, plan: EpochPlan) -> EpochPlan:
        """The valid plan: this one, or the one that another writer put first."""
        self.storage.put_once(f"{epoch}.json", json.dumps(asdict(plan)).encode())
        return self.plan(epoch) or plan

    def done(self) -> Done:
        if self._done is None:
            self._done = self._load()
        return self._done

    def _load(self) -> Done:
        found = self._read(_DONE) or {}
        lanes = {lane: (int(epoch), float(at)) for lane, (epoch, at) in found.pop("lanes", {}).items()}
        return Done(**found, lanes=lanes)

    def finish(self, epoch: int, digest: str, lanes: list[int], small: bool = False) -> None:
        """All lanes have the epoch; delete the rows of this and earlier epochs. A small epoch has left no plan."""
        done = self.done()
        marked = {**done.lanes, **{str(lane): (epoch, time.time()) for lane in lanes}}
        self._put(Done(epoch, digest, marked, run=done.run))
        if self._has_leftovers:
            self._delete_leftovers(epoch)
        self._has_leftovers = not small

    def record_claim(self, run: str, lanes: Iterable[int]) -> None:
        """Record that these lanes have a marker and belong to `run`, and that epochs are written from now on."""
        done = self.done()
        claimed = {str(lane): (-1, time.time()) for lane in lanes if str(lane) not in done.lanes}
        self._put(Done(done.epoch, done.digest, {**done.lanes, **claimed}, run=run))

    def record_rest(self, run: str) -> None:
        """Record that no epoch is half written: the next start needs no marker to know that. Only for the run that was the last to claim:
        a later one may have begun an epoch of which nothing is recorded.
        """
        done = self._load()
        if done.run == run:
            self._put(replace(done, rested=True))

    def _put(self, done: Done) -> None:
        self.storage.put(_DONE, json.dumps(asdict(done)).encode())
        self._done = done

    def _delete_leftovers(self, epoch: int) -> None:
        """The plan of this epoch stays: a repetition may need it. Files that a killed driver was writing have names of their own."""
        for name in self.storage.names():
            number = name.partition(".")[0].partition("-")[0]
            if name.startswith(".") and name.endswith(".tmp"):
                self.storage.delete(name)
            if number.isdigit() and (int(number) < epoch or (int(number) == epoch and not name.endswith(".json"))):
                self.storage.delete(name)

    def _read(self, name: str) -> dict[str, Any] | None:
        data = self.storage.read(name)
        return json.loads(data) if data else None
