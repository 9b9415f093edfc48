"""Keeps a session for the next run of the process: programs and notebooks collect rows many times, and each start of Spark takes
seconds.

PySpark supports one session per process, so one is kept. It is lent to one run at a time that needs the same options; if a run needs
another session, the kept one is closed, unless it is in use. It ends with the process.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from millstream.errors import Diagnostic, SetupError
from millstream.jvm.session import Session, SessionOptions


@dataclass(slots=True)
class _Place:
    """The kept session."""

    session: Session | None = None
    options: SessionOptions | None = None
    lent: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


_place = _Place()


def lend(options: SessionOptions, opened: Callable[[SessionOptions], Session]) -> Session:
    """The kept session, if its options match and it is alive; else a new one, which is kept. Closing it returns it."""
    with _place.lock:
        _require_back()
        fits = _fits(options)
        if not fits:
            _close()
            _place.session, _place.options = opened(options), options
            atexit.register(_close)
        assert _place.session is not None
        _place.lent = True
        return replace(_place.session, startup=None if fits else _place.session.startup, give_back=_give_back)


def dismiss() -> None:
    """Close the kept session, because another one is needed."""
    with _place.lock:
        _require_back()
        _close()


def _give_back() -> None:
    _place.lent = False


def _require_back() -> None:
    if _place.lent and _place.session is not None and _place.session.jvm is not None and _place.session.jvm.alive:
        raise SetupError(Diagnostic("MS044", "a Spark session of this process is in use", help="wait until the other `collect()` is done"))


def _close() -> None:
    session, _place.session, _place.options, _place.lent = _place.session, None, None, False
    if session is not None:
        atexit.unregister(_close)
        session.close()


def _fits(options: SessionOptions) -> bool:
    session, held = _place.session, _place.options
    if session is None or held is None or session.jvm is None or not session.jvm.alive or not session.runs:
        return False
    same = replace(options, app_name=held.app_name, extras=held.extras)
    return same == held and set(options.extras) <= set(held.extras)
