"""Asks TypeScript's own compiler about a script, where it is installed: `tsc` on the path, or in the `node_modules` of a folder above."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from millstream.scripts.outline import outline_of
from millstream.scripts.program import ScriptFault
from millstream.scripts.stripping import StripError, strip_types
from millstream.scripts.tokens import tokens_of

_FINDING = re.compile(r"^script\.ts\((\d+),(\d+)\): error (TS\d+: .*(?:\n +.*)*)$", re.MULTILINE)
_OPTIONS = ("--noEmit", "--strict", "--noImplicitAny", "false", "--target", "es2022", "--lib", "es2022", "--pretty", "false", "--types", "")
_SECONDS = 60


def find_compiler(folder: Path) -> str | None:
    """The compiler's program; None when there is none."""
    above = (each / "node_modules" / ".bin" / "tsc" for each in (folder.resolve(), *folder.resolve().parents))
    return next((str(each) for each in above if each.is_file()), None) or shutil.which("tsc")


def check_types(compiler: str, text: str, rows: str, mode: str) -> list[ScriptFault]:
    """The type errors of a script. `rows`: the declarations of its rows."""
    with tempfile.TemporaryDirectory(prefix="millstream-types-") as name:
        folder = Path(name)
        (folder / "row.d.ts").write_text(rows + _CONSOLE, encoding="utf-8")
        (folder / "script.ts").write_text(text + _use_of(text, mode), encoding="utf-8")
        command = [compiler, *_OPTIONS, "row.d.ts", "script.ts"]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return [ScriptFault("MS198", f"TypeScript's compiler did not end within {_SECONDS} s")]
    last = text.count("\n") + 1
    return [_fault(int(line), int(column), said, last) for line, column, said in _FINDING.findall(done.stdout)]


_CONSOLE = "declare const console: Record<'log' | 'info' | 'debug' | 'warn' | 'error', (...values: unknown[]) => void>;\n"


def _use_of(text: str, mode: str) -> str:
    """What makes the text a module of its own, and compares its function with the rows."""
    try:
        names = [token.text for token in outline_of(tokens_of(strip_types(text))).functions]
    except StripError:
        names = []
    entry = "invoke" if "invoke" in names else names[0] if len(names) == 1 else ""
    if not entry:
        return "\nexport {};\n"
    one = "(row: Row) => Result | null | (Result | null)[]"
    kind = one if mode == "row" else "(rows: Row[]) => (Result | null)[]"
    return f"\nexport const asMillstreamCallsIt: {kind} = {entry};\n"


def _fault(line: int, column: int, said: str, last: int) -> ScriptFault:
    first, *reasons = (part.strip() for part in said.splitlines())
    if line > last:  # the innermost reason says which field
        help_ = "write `(row: Row): Result` to see the mistake at its place; `millstream types FILE NODE` prints both types"
        return ScriptFault("MS198", f"the function does not fit its rows: {reasons[-1] if reasons else first}", help_)
    return ScriptFault("MS198", " ".join([first, *reasons[-1:]]), "", line, column)
