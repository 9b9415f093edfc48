"""Retries jobs whose Python worker died (of its memory use, or with its machine). On a cluster Spark retries the task; on one machine it
does not.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")
_SIGNS = ("Python worker exited unexpectedly", "Python worker failed to connect", "crashed unexpectedly", "Broken pipe", "Connection reset")
_ATTEMPTS = 6


def worker_died(error: BaseException) -> bool:
    """Whether a job failed because its worker died."""
    return any(sign in str(error) for sign in _SIGNS)


def retry_dead_workers(job: Callable[[], Result]) -> Result:
    """Run an idempotent job; retry with a pause when a Python worker dies."""
    for attempt in range(_ATTEMPTS - 1):
        try:
            return job()
        except Exception as error:
            if not worker_died(error):
                raise
        time.sleep(min(0.2 * 2**attempt, 3))
    return job()
