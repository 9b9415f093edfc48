"""Silences the terminal output of PySpark and Py4J.

PySpark logs every failed query as JSON with the JVM's trace; `failures` reports the same in one screen. Py4J logs a trace when Ctrl-C, or
the JVM's death, interrupts a call to the JVM; the code that catches the exception reports it.
"""

from __future__ import annotations

import logging

_CHATTY = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_CUT_OFF = ("KeyboardInterrupt while sending command", "Exception while sending command")


def hush() -> None:
    """Call it before the first call to the JVM; it is idempotent."""
    for name in _CHATTY:
        logging.getLogger(name).disabled = True
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_says_more)


def _says_more(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith(_CUT_OFF)
