"""What PySpark and Py4J write to the terminal by themselves, kept off it.

PySpark logs every failed query as JSON with the JVM's trace; `failures` says the same in one screen. Py4J logs a trace when Ctrl-C, or the
JVM's death, meets a call to the JVM; whoever catches the exception says what becomes of the run.
"""

from __future__ import annotations

import logging

_CHATTY = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_CUT_OFF = ("KeyboardInterrupt while sending command", "Exception while sending command")


def hush() -> None:
    """To be called before the JVM is talked to; calling it again changes nothing."""
    for name in _CHATTY:
        logging.getLogger(name).disabled = True
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_says_more)


def _says_more(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith(_CUT_OFF)
