"""A script as the workers get it: JavaScript that evaluates to a function which makes the user's function, and what is known of it.

The user's text stands inside a strict function, behind a prefix on its first line, so that line numbers are the user's own. A text that
closes this function and opens another one would compile too, so the text is also parsed alone: behind a `throw`, none of it runs.
"""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from millstream.scripts.outline import Outline, outline_of
from millstream.scripts.stripping import StripError, lines_of, strip_types
from millstream.scripts.tokens import Token, tokens_of
from millstream.worker.scripts.engines import LimitError, Limits, StartError
from millstream.worker.scripts.failures import SourceLines
from millstream.worker.scripts.guest import Guest

Language = Literal["typescript", "javascript"]
MOST = 1 << 20
_PREFIX = '(function () { "use strict"; '
_ALONE = '"use strict"; throw ""; '.ljust(len(_PREFIX))
_LONE = "const invoke = ("
_END = "\n//# sourceURL=script"
_COMPILE = """((options) => () => {
  for (const source of options.sources) {
    try { (0, eval)(source); } catch (error) { if (error) return JSON.stringify([error.message, String(error.stack)]); }
  }
  return "";
})"""
_LIMITS = Limits(5, 64 << 20)


@dataclass(frozen=True)
class ScriptFault:
    """What is wrong with a script, and where in its text; line 0: as a whole."""

    code: str
    message: str
    help: str = ""
    line: int = 0
    column: int = 0
    width: int = 1


@dataclass(frozen=True)
class Program:
    """A script that can run."""

    source: str
    lines: SourceLines
    state: str
    """What in it can keep state, with its line; empty: nothing."""


@lru_cache(maxsize=64)
def compile_script(text: str, language: Language) -> Program | ScriptFault:
    """The program, or the first thing that is wrong. ImportError when the engine is not installed."""
    try:
        return _compile(text, language)
    except RecursionError:
        return ScriptFault("MS191", "the script cannot be parsed: it is nested too deeply")


def _compile(text: str, language: Language) -> Program | ScriptFault:
    if not text.strip():
        return ScriptFault("MS192", "the script is empty", "write a function, such as `function invoke(row) { return row; }`")
    if len(text) > MOST:
        return ScriptFault(
            "MS192", f"the script has {len(text) / (1 << 20):.1f} MB, more than a script can have (1 MB)", "it may be a data file"
        )
    if language == "typescript":
        try:
            code = strip_types(text)
        except StripError as error:
            return _at(error.at, "MS191", f"the script is not TypeScript: {error.reason}")
        lines = lines_of(text, code)
    else:
        code, lines = text, ()
    return _build(text, code, lines)


def _build(text: str, code: str, lines: tuple[int, ...]) -> Program | ScriptFault:
    outline = outline_of(tokens_of(code))
    if outline.modules is not None:
        return _at_source(
            text, outline.modules, "MS192", "a script has no modules: `import` is not available", "write what it needs into the script"
        )
    entry = _entry(text, outline)
    if isinstance(entry, ScriptFault):
        return entry
    own, rest = _wrap(_without_exports(code, outline), entry, outline)
    found = SourceLines(lines, len(_PREFIX) + len(own) - len(own.removeprefix(_LONE)))
    body = _PREFIX + own + rest + _END
    return _compile_fault(text, (_ALONE + own + _END, body), found) or Program(body, found, _state(text, outline))


def _entry(text: str, outline: Outline) -> str | ScriptFault:
    """The name of the function to call; empty for a function without a name."""
    names = [token.text for token in outline.functions]
    if outline.expression:
        return ""
    if "invoke" in names:
        return "invoke"
    if not names:
        return ScriptFault("MS192", "the script has no function", "write one of a row, such as `function invoke(row) { return row; }`")
    if len(names) > 1:
        listed = ", ".join(f"`{name}`" for name in names[:5])
        return _at_source(
            text, outline.functions[1], "MS192", f"the script has several functions: {listed}", "name the one to call `invoke`"
        )
    return names[0]


def _wrap(code: str, entry: str, outline: Outline) -> tuple[str, str]:
    """The user's text as statements, and what follows them."""
    if not entry:
        return f"{_LONE}{code.strip().rstrip(';')}\n);", "return {invoke, constants: [invoke]}; })"
    functions = dict.fromkeys(token.text for token in outline.functions)
    names = ", ".join(dict.fromkeys([*outline.constants, *functions]))
    return f"{code}\n;", f"return {{invoke: {entry}, constants: [{names}]}}; }})"


def _without_exports(code: str, outline: Outline) -> str:
    for token in reversed(outline.exports):
        code = code[: token.start] + " " * len(token.text) + code[token.end :]
    return code


def _compile_fault(text: str, sources: tuple[str, ...], lines: SourceLines) -> ScriptFault | None:
    """What the engine says of the texts when it compiles them."""
    try:
        with closing(Guest(_COMPILE, json.dumps({"sources": sources}), _LIMITS)) as guest:
            said = guest.call("", _LIMITS)
    except StartError as error:
        said = json.dumps([str(error).splitlines()[0], ""])
    except LimitError as met:
        said = json.dumps(["it is nested too deeply" if met.limit == "stack" else f"its parser meets the limit of {met.limit}", ""])
    if not said:
        return None
    message, stack = json.loads(said)
    frames = lines.frames(stack)
    _, line, column = frames[0] if frames else ("", 0, 0)
    last = text.count("\n") + 1
    return ScriptFault("MS191", f"the script cannot be parsed: {message}", "", min(line, last), column or 1)


def _state(text: str, outline: Outline) -> str:
    if outline.state is None:
        return ""
    return f"`{outline.state.text}`"


def _at(token: Token | None, code: str, message: str, help_: str = "") -> ScriptFault:
    if token is None:
        return ScriptFault(code, message, help_)
    return ScriptFault(code, message, help_, token.line, token.column, len(token.text.splitlines()[0]))


def _at_source(text: str, token: Token, code: str, message: str, help_: str) -> ScriptFault:
    """At the token's first occurrence in the user's text: the stripped text has other lines."""
    return _at(next((each for each in tokens_of(text) if each.text == token.text), None), code, message, help_)
