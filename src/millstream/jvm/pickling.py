"""Pickles code by value for Spark's Python workers: `millstream.worker`, a connector's own worker code, the user's modules.

A function is pickled by reference when its module can be imported on the worker, else by value. Modules next to the pipeline cannot be
imported there, and Millstream need not be installed there. So while a plan is built, both are registered for pickling by value. Installed
packages stay references.
"""

from __future__ import annotations

import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from millstream import errors, worker


@contextmanager
def by_value(*packages: ModuleType, function: Callable[..., Any] | None = None, directory: Path | None = None) -> Iterator[None]:
    """Pickle `millstream.worker`, `packages`, and the modules in `directory` that `function` may refer to, by value."""
    from pyspark import cloudpickle

    pickling: Any = cloudpickle  # it has no types
    own = _own_modules(directory, function) if directory is not None and function is not None else []
    travelling = [worker, errors, *packages, *own]
    modules = list(dict.fromkeys(travelling))
    with _lock:
        for module in modules:
            if module.__name__ not in pickling.list_registry_pickle_by_value():
                pickling.register_pickle_by_value(module)
                _users[module.__name__] = 0
            if module.__name__ in _users:
                _users[module.__name__] += 1
    try:
        yield
    finally:
        with _lock:
            for module in modules:
                _release(module, pickling)


_lock = threading.Lock()
_users: dict[str, int] = {}
"""Registered module → its number of users: queries pickle in several threads, and the registry is global."""


def _release(module: ModuleType, pickling: Any) -> None:
    if module.__name__ in _users:
        _users[module.__name__] -= 1
        if not _users[module.__name__]:
            del _users[module.__name__]
            pickling.unregister_pickle_by_value(module)


def _own_modules(directory: Path, function: Callable[..., Any]) -> list[ModuleType]:
    beside = (f"{directory.absolute()}/", f"{directory.resolve()}/")
    home = sys.modules.get(getattr(function, "__module__", None) or "")
    # runs in every epoch for every module of the process: the cheap test comes first
    candidates = [module for module in list(sys.modules.values()) if str(getattr(module, "__file__", None) or "").startswith(beside)]
    found = [module for module in candidates if _is_users(module)]
    if home is not None and home not in found and _is_users(home):
        found.append(home)
    return found


def _is_users(module: ModuleType) -> bool:
    """Not installed, not part of Python, and not ours."""
    file, package = getattr(module, "__file__", None), module.__name__.split(".", maxsplit=1)[0]
    if not file or package in {"__main__", "millstream", "pyspark"}:
        return False
    return not file.startswith(_package_folders())


@cache
def _package_folders() -> tuple[str, ...]:
    """The folders of installed packages: often a virtual environment next to the pipeline, with hundreds of modules to check per epoch."""
    found = {sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib", "platstdlib")}
    return tuple(f"{folder}/" for folder in found if folder)
