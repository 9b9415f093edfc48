"""Commands and programs in this process, on the session that all tests share: a process of its own starts a JVM, which takes seconds.

What a process adds, such as exit codes, signals and what the JVM itself prints, is tested where processes are started.
"""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Done = subprocess.CompletedProcess[str]


@pytest.fixture
def shared(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """Whoever opens a session gets the shared one."""
    from millstream.jvm.session import Session

    for module in ("millstream.engine.sessions", "millstream.engine.engine"):
        monkeypatch.setattr(f"{module}.open_with", lambda *_, **__: Session.adopt(spark))
    return spark


@pytest.fixture
def warm(shared: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """`warm("run", "p.yaml")` is `millstream run p.yaml`, and `warm("program.py")` is `python program.py`, in the test's own folder."""

    def go(*words: str, folder: Path = tmp_path) -> Done:
        said, told, code = StringIO(), StringIO(), 0
        with monkeypatch.context() as patch, _restored(patch, folder), redirect_stdout(said), redirect_stderr(told):
            try:
                _start(words, patch)
            except SystemExit as left:
                code = int(left.code or 0)
        return Done(words, code, said.getvalue(), told.getvalue())

    return go


def _start(words: tuple[str, ...], patch: pytest.MonkeyPatch) -> None:
    from millstream import cli

    if words[0].endswith(".py"):
        patch.setattr(sys, "argv", list(words))
        runpy.run_path(words[0], run_name="__main__")
    else:
        patch.setattr(sys, "argv", ["millstream", *words])
        cli.main()


@contextmanager
def _restored(patch: pytest.MonkeyPatch, folder: Path) -> Iterator[None]:
    """A process begins in a folder, finds modules there, and takes its signal handlers and its modules along when it ends."""
    handlers: dict[signal.Signals, Any] = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    modules = set(sys.modules)
    with chdir(folder):
        patch.syspath_prepend(os.fspath(folder))
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
            for name in set(sys.modules) - modules:
                if folder in Path(getattr(sys.modules[name], "__file__", None) or "/").parents:
                    del sys.modules[name]
