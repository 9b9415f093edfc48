"""Reports the death of a JVM during a run, with the end of its log: any other failure follows from it."""

from __future__ import annotations

import signal
import subprocess

from millstream.errors import Diagnostic, RunError, TemporaryError
from millstream.jvm.process import Jvm
from millstream.worker.masking import exception_chain

_LAST_MOMENT = 5.0
"""Seconds that a JVM may take to end after it closed the connection."""
_CONNECTION_LOST = ("Py4JNetworkError", "Answer from Java side is empty")
MEMORY = "OutOfMemoryError"
MEMORY_HELP = (
    "raise `settings.driver_memory`, or read less in an epoch (`max_files_per_epoch`, `max_rows_per_epoch`); look for very large rows"
)


def death_of(jvm: Jvm | None, error: BaseException) -> RunError | None:
    """Why the JVM died; None while it is alive. After "out of memory" the same epoch would kill a new one too; otherwise a new JVM may
    help.
    """
    if jvm is None or not _has_ended(jvm, error):
        return None
    words = jvm.last_words()
    if MEMORY in words:
        return RunError(Diagnostic("MS155", "Spark's JVM ran out of memory", detail=words, help=MEMORY_HELP))
    message = f"Spark's JVM {_describe_exit(jvm.process.returncode)}"
    help_ = "the system may have killed it to free memory; see `dmesg`" if jvm.process.returncode == -signal.SIGKILL else ""
    return TemporaryError(
        Diagnostic("MS156", message, detail=words, help=help_ or f"the end of its log is above; the whole log is `{jvm.log}`")
    )


def _has_ended(jvm: Jvm, error: BaseException) -> bool:
    if not jvm.alive:
        return True
    refused = any(isinstance(each, ConnectionError) for each in exception_chain(error))  # it listens no more, and has not ended yet
    if not refused and not is_connection_lost(error):
        return False
    try:
        jvm.process.wait(_LAST_MOMENT)
    except subprocess.TimeoutExpired:
        return False
    return True


def is_connection_lost(error: BaseException) -> bool:
    """Whether a call to the JVM failed because the JVM is dead."""
    return any(sign in f"{type(each).__name__}: {each}" for each in exception_chain(error) for sign in _CONNECTION_LOST)


def _describe_exit(code: int) -> str:
    if code >= 0:
        return f"ended with code {code}"
    names = {each.value: each.name for each in signal.Signals}
    return f"was killed by {names.get(-code, f'signal {-code}')}"
