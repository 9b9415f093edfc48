"""A page is played from top to bottom in one directory: files are written, programs and commands are run.

Programs, `millstream run` and `millstream test` use the session that all tests share; other commands run in processes of their own.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.docs.blocks import Block
from tests.warm import Done

_LEFT_OUT = ("pip ", "make ", "source ", "python -m venv", "millstream fetch", "millstream dev")
"""Installation is tried by making the test environment; servers have tests of their own."""
_PLAIN = ("mkdir ", "printf ", "echo ", "cat ", "ls ", "rm ", "cp ")
_SHARED = ("run", "test")


class Player:
    """Runs blocks in a directory."""

    def __init__(
        self, folder: Path, warm: Callable[..., Done], flags: Sequence[str] = (), execute: Callable[..., None] | None = None
    ) -> None:
        self._folder, self._warm, self._flags, self._execute = folder, warm, flags, execute
        self._names: dict[str, Any] = {"__name__": "__main__"}
        self._said = ""
        """What the last command printed."""

    def play(self, blocks: Sequence[Block]) -> None:
        programs = {match for block in blocks if block.language == "bash" for match in re.findall(r"^python (\S+)", block.text, re.M)}
        for block in blocks:
            if block.file:
                (self._folder / block.file).parent.mkdir(parents=True, exist_ok=True)
                (self._folder / block.file).write_text(block.text)
            if block.language == "python" and block.file not in programs:
                self._program(block)
            if block.language == "bash":
                self._shell(block)
            if block.language == "sql" and self._execute is not None:
                self._execute(*(statement for statement in block.text.split(";") if statement.strip()))
            if block.key == "output":
                missing = [line for line in block.text.splitlines() if line.strip() not in self._said]
                assert missing == [], f"{block.place}: not printed\n{self._said}"

    def _program(self, block: Block) -> None:
        """A program, in the directory of the page: modules that the page shows can be imported."""
        path = self._folder / (block.file or f"block_{block.line}.py")
        path.write_text(block.text)
        exec(compile(block.text, str(path), "exec"), self._names)

    def _shell(self, block: Block) -> None:
        if block.key == "shell":
            assert self._process(block.text) == 0, f"{block.place}\n{self._said}"
            return
        lines = [line.partition("  #")[0].strip() for line in block.text.splitlines()]
        commands = [line for line in lines if line and not line.startswith(("#", *_LEFT_OUT))]
        for number, line in enumerate(commands):
            wanted = int(block.value) if block.key == "exit" and number == len(commands) - 1 else 0
            code = self._command(line)
            assert code == wanted, f"{block.place}: `{line}` ended with {code}\n{self._said}"
            assert "Traceback" not in self._said

    def _command(self, line: str) -> int:
        words = shlex.split(line)
        if words[0] == "millstream" and words[1] in _SHARED:
            return self._shared(*words[1:], *(self._flags if words[1] == "run" else ()))
        if words[0] == "python":
            return self._shared(*words[1:])
        assert line.startswith(("millstream ", *_PLAIN)), f"how is `{line}` tried?"
        return self._process(line)

    def _shared(self, *words: str) -> int:
        """The command in this process, on the shared session."""
        done = self._warm(*words, folder=self._folder)
        self._said = done.stdout + done.stderr
        return done.returncode

    def _process(self, script: str) -> int:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", script], cwd=self._folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
        )
        self._said = done.stdout + done.stderr
        return done.returncode
