"""A JVM that died under a run is told as such, with its last words: whatever else failed, failed because of it."""

from __future__ import annotations

import signal
import subprocess

from millstream.engine.jvm import Jvm
from millstream.errors import Diagnostic, RunError, TransientError
from millstream.masking import related

_LAST_MOMENT = 5.0
"""Seconds that a JVM may take to end once it has hung up."""
_CONNECTION_LOST = ("Py4JNetworkError", "Answer from Java side is empty")
MEMORY = "OutOfMemoryError"
MEMORY_HELP = (
    "raise `settings.driver_memory`, or read less in an epoch (`max_files_per_epoch`, `max_rows_per_epoch`); are single rows huge?"
)


def death_of(jvm: Jvm | None, error: BaseException) -> RunError | None:
    """Why the JVM is gone; None while it lives. Out of memory, it would die of the same epoch again; else a new one may help."""
    if jvm is None or not _ended(jvm, error):
        return None
    words = jvm.last_words()
    if MEMORY in words:
        return RunError(Diagnostic("MS155", "Spark's JVM ran out of memory", detail=words, help=MEMORY_HELP))
    message = f"Spark's JVM {_ending(jvm.process.returncode)}"
    help_ = "the system may have killed it to free memory; see `dmesg`" if jvm.process.returncode == -signal.SIGKILL else ""
    return TransientError(
        Diagnostic("MS156", message, detail=words, help=help_ or f"the end of its log is above; the whole is `{jvm.log}`")
    )


def _ended(jvm: Jvm, error: BaseException) -> bool:
    if not jvm.alive:
        return True
    if not is_connection_lost(error):
        return False
    try:
        jvm.process.wait(_LAST_MOMENT)
    except subprocess.TimeoutExpired:
        return False
    return True


def is_connection_lost(error: BaseException) -> bool:
    """Whether a call to the JVM found nobody there."""
    return any(sign in f"{type(each).__name__}: {each}" for each in related(error) for sign in _CONNECTION_LOST)


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with code {code}"
    names = {each.value: each.name for each in signal.Signals}
    return f"was killed by {names.get(-code, f'signal {-code}')}"
