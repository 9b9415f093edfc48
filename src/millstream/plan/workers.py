"""Python workers die, for their memory or with their machine. On a cluster Spark tries their task again; on one machine it does not."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")
_SIGNS = ("Python worker exited unexpectedly", "Python worker failed to connect", "crashed unexpectedly", "Broken pipe", "Connection reset")
_ATTEMPTS = 6


def worker_died(error: BaseException) -> bool:
    """Whether a job failed because of the worker and not because of the work."""
    return any(sign in str(error) for sign in _SIGNS)


def persistently(job: Callable[[], Result]) -> Result:
    """The result of work that may be repeated, over the dead bodies of its workers."""
    for attempt in range(_ATTEMPTS - 1):
        try:
            return job()
        except Exception as error:
            if not worker_died(error):
                raise
        time.sleep(min(0.2 * 2**attempt, 3))
    return job()
