"""A process that dies inside a plugin: before each line of the plugin's own code, in turn.

`sys.settrace` calls back before every line, and the callback raises there. What was raised passes through the plugin's frames, so files and
connections are closed, as the system closes those of a killed process; nothing after the line runs, except for `finally`. Code of other
packages and of other threads is not interrupted.
"""

from __future__ import annotations

import dis
import gc
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from millstream.registry.loading import own_modules
from millstream.registry.mark import is_own

MOST = 60
"""How many kills are tried."""


class KilledError(BaseException):
    """The process dies here. It is no Exception: a plugin that handles its own failures does not handle this one."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Before a line of a file runs for the nth time."""

    file: str
    line: int
    nth: int

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line}" + (f" (time {self.nth})" if self.nth > 1 else "")


def moments(plugin: type, call: Callable[[], Any]) -> list[Moment]:
    """When the call can be killed: before each line for the first time, then for the second and the last time; not more than `MOST`."""
    tracer = _Tracer(_files_of(plugin))
    tracer.run(call)
    first = [Moment(*place, 1) for place in tracer.passed]
    second = [Moment(*place, 2) for place, times in tracer.passed.items() if times > 1]
    last = [Moment(*place, times) for place, times in tracer.passed.items() if times > 2]
    return [*first, *second, *last][:MOST]


def run_until(plugin: type, moment: Moment, call: Callable[[], Any]) -> None:
    """Call until the moment, or to the end if it does not come."""
    _Tracer(_files_of(plugin), moment).run(call)
    gc.collect(1)  # a connection that only the dead frames had is closed now


@dataclass
class _Tracer:
    files: frozenset[str]
    end: Moment | None = None
    passed: Counter[tuple[str, int]] = field(default_factory=Counter)
    killed: bool = False

    def run(self, call: Callable[[], Any]) -> None:
        before = sys.gettrace()  # of a debugger, or of a measurement of coverage
        sys.settrace(self._enter)
        try:
            call()
        except BaseException:
            if not self.killed:
                raise
        finally:
            sys.settrace(before)

    def _enter(self, frame: FrameType, event: str, arg: Any) -> Any:
        return self._step if frame.f_code.co_filename in self.files else None

    def _step(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line" and frame.f_lasti not in _ends_of_with(frame.f_code):
            place = (frame.f_code.co_filename, frame.f_lineno)
            self.passed[place] += 1
            if self.end == Moment(*place, self.passed[place]):
                self.killed = True
                raise KilledError
        return self._step


@cache
def _ends_of_with(code: CodeType) -> frozenset[int]:
    """Where `with` calls `__exit__`. An exception there skips it, and a lock of this process would never be released."""
    steps = list(dis.get_instructions(code))
    nothing = [step.opname == "LOAD_CONST" and step.argval is None for step in steps]
    return frozenset(step.offset for at, step in enumerate(steps) if nothing[at : at + 3] == [True] * 3)


def _files_of(plugin: type) -> frozenset[str]:
    """The files with the plugin's code: its package, and its classes."""
    modules = {str(module.__file__) for module in own_modules(plugin) if getattr(module, "__file__", None)}
    own = [found for found in plugin.__mro__ if is_own(found)]
    codes = [getattr(value, "__code__", None) for found in own for value in vars(found).values()]
    return frozenset(modules | {code.co_filename for code in codes if code is not None})
