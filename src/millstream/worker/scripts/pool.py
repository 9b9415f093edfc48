"""The engines of this worker process, kept from task to task: starting one costs more than a small batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from millstream.worker.scripts.child import Child
from millstream.worker.scripts.engines import LimitError, Limits, StartError, keep, kept
from millstream.worker.scripts.guest import Guest

EngineName = Literal["quickjs", "deno"]
_MOST = 4


@dataclass(frozen=True)
class EngineSpec:
    """All that an engine is started with; equal specs share engines."""

    name: EngineName
    prelude: str
    main: str
    options: str
    limits: Limits

    def start(self) -> Guest | Child:
        if self.name == "deno":
            return Child(self.prelude, self.main, self.options, self.limits)
        return Guest(self.prelude, self.options, self.limits)


class Lender:
    """Lends one engine at a time to one task, and starts another one when it is dead."""

    def __init__(self, spec: EngineSpec) -> None:
        self._spec = spec
        self._engine: Guest | Child | None = None

    @property
    def engine(self) -> Guest | Child:
        if self._engine is None:
            try:
                self._engine = self._spec.start()
            except LimitError as met:
                raise StartError(f"the code around the function meets the limit of {met.limit}") from None
        return self._engine

    def discard(self) -> None:
        """The engine has met a limit, or holds too much memory."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def give_back(self) -> None:
        if self._engine is None:
            return
        idle: list[tuple[EngineSpec, Guest | Child]] = kept("idle") or keep("idle", [])
        idle.append((self._spec, self._engine))
        self._engine = None
        while len(idle) > _MOST:
            idle.pop(0)[1].close()

    def take(self) -> None:
        """An idle engine with the same script, if there is one that has not died meanwhile."""
        idle: list[tuple[EngineSpec, Guest | Child]] = kept("idle") or []
        for each in [each for each in idle if not each[1].alive]:
            idle.remove(each)
            each[1].close()
        for at, (spec, engine) in enumerate(idle):
            if spec == self._spec:
                del idle[at]
                self._engine = engine
                return


@contextmanager
def lend(spec: EngineSpec) -> Iterator[Lender]:
    lender = Lender(spec)
    lender.take()
    try:
        yield lender
    except BaseException:
        lender.discard()
        raise
    else:
        lender.give_back()
