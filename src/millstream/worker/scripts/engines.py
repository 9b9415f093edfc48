"""What an engine is: it is started with a script, and turns one request into one answer, both JSON.

An engine that has met a limit is dead: whoever uses it closes it and starts another one. Modules that travel by value lose their globals
between tasks, so what lasts as long as a worker process is kept in a module of its own (`home`).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal, Protocol

_HOME = "_millstream_scripts"
Limit = Literal["time", "memory", "stack"]


@dataclass(frozen=True)
class Limits:
    """What one batch may use."""

    seconds: float
    memory: int
    """Bytes."""


class LimitError(Exception):
    """The engine was stopped. `row` is the row of the request that it was at; None when that is not known."""

    def __init__(self, limit: Limit, row: int | None) -> None:
        super().__init__(limit)
        self.limit, self.row = limit, row


class MissingEngineError(RuntimeError):
    """The package of an engine is not installed here."""


class StartError(RuntimeError):
    """The script cannot be evaluated: the engine's text."""


class Engine(Protocol):
    def call(self, request: str, limits: Limits, *, traced: bool = False) -> str:
        """The answer. `traced`: the row at which a limit is met must be known, whatever it costs."""
        ...

    def close(self) -> None: ...


def home() -> ModuleType:
    """A module that lasts as long as this process."""
    return sys.modules.setdefault(_HOME, ModuleType(_HOME))


def kept(name: str) -> Any:
    return getattr(home(), name, None)


def keep(name: str, value: Any) -> Any:
    setattr(home(), name, value)
    return value
