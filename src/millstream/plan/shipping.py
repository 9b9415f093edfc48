"""The user's own modules, on their way to the workers.

A function is sent to Python's workers by reference when its module can be imported there, and by value when not. Modules that lie
beside the pipeline cannot be: so while a plan is built, they are registered to go by value. Installed packages stay references.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from millstream import masking
from millstream.plan import archives


@contextmanager
def by_value(pickling: Any, directory: Path, function: Callable[..., Any], carrier: ModuleType) -> Iterator[None]:
    """Within this, functions of the pipeline's own modules, and what they refer to, are pickled whole; so is `carrier`, which calls them.
    `pickling` is Spark's cloudpickle.
    """
    already = pickling.list_registry_pickle_by_value()
    modules = [module for module in (carrier, archives, masking, *_own_modules(directory, function)) if module.__name__ not in already]
    for module in modules:
        pickling.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in modules:
            pickling.unregister_pickle_by_value(module)


def _own_modules(directory: Path, function: Callable[..., Any]) -> list[ModuleType]:
    beside = (f"{directory.absolute()}/", f"{directory.resolve()}/")
    home = sys.modules.get(getattr(function, "__module__", None) or "")
    # asked in every epoch, of every module of the process: the cheap question comes first
    candidates = [module for module in list(sys.modules.values()) if str(getattr(module, "__file__", None) or "").startswith(beside)]
    found = [module for module in candidates if _is_users(module)]
    if home is not None and home not in found and _is_users(home):
        found.append(home)
    return found


def _is_users(module: ModuleType) -> bool:
    """Neither installed nor part of Python, nor ours."""
    file, package = getattr(module, "__file__", None), module.__name__.split(".", maxsplit=1)[0]
    if not file or package in {"__main__", "millstream", "pyspark"}:
        return False
    return not file.startswith(_installed())


@cache
def _installed() -> tuple[str, ...]:
    """Where installed packages lie: often in a virtual environment beside the pipeline, with hundreds of modules to ask about per epoch."""
    found = {sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib", "platstdlib")}
    return tuple(f"{folder}/" for folder in found if folder)
