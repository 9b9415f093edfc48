"""Splits JavaScript and TypeScript into tokens: enough to find functions, constants and calls, and to compare two texts. No syntax tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["name", "number", "string", "template", "regex", "mark"]
_SPACE = re.compile(r"(?:\s+|//[^\n\u2028\u2029]*|/\*.*?(?:\*/|\Z))+", re.DOTALL)
_NAME = re.compile(r"[#@]?[\w$\u0080-\uffff]+")
_NUMBER = re.compile(r"(?:0[xXoObB][\da-fA-F_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?)n?")
_STRING = re.compile(r"\"(?:[^\"\\\n]|\\.|\\\n)*\"?|'(?:[^'\\\n]|\\.|\\\n)*'?", re.DOTALL)
_REGEX = re.compile(r"/(?![*/])(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*")
_MARK = re.compile(r"=>|\.\.\.|\?\.|[-+*/%&|^<>=!?]=?|.", re.DOTALL)
_BEFORE_VALUE = {"return", "typeof", "case", "in", "of", "do", "else", "void", "delete", "throw", "new", "instanceof", "yield", "await"}


@dataclass(frozen=True, slots=True)
class Token:
    kind: Kind
    text: str
    start: int
    line: int
    """From 1."""
    column: int
    after_break: bool
    """Whether a line break is before it."""

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def tokens_of(text: str) -> list[Token]:
    return list(_tokens(text))


def _tokens(text: str) -> Iterator[Token]:
    at, line, start_of_line, previous = 0, 1, 0, None
    while at < len(text):
        broken = False
        if space := _SPACE.match(text, at):
            line, start_of_line, broken = _count(text, at, space.end(), line, start_of_line)
            at = space.end()
            if at >= len(text):
                return
        kind, end = _next(text, at, previous)
        token = Token(kind, text[at:end], at, line, at - start_of_line + 1, broken)
        yield token
        line, start_of_line, _ = _count(text, at, end, line, start_of_line)
        at, previous = end, token


def _count(text: str, start: int, end: int, line: int, start_of_line: int) -> tuple[int, int, bool]:
    breaks = text.count("\n", start, end)
    return (line + breaks, text.rfind("\n", start, end) + 1, True) if breaks else (line, start_of_line, False)


def _next(text: str, at: int, previous: Token | None) -> tuple[Kind, int]:
    char = text[at]
    if char in "\"'" and (found := _STRING.match(text, at)):
        return "string", found.end()
    if char == "`":
        return "template", _end_of_template(text, at)
    if (char.isdigit() or (char == "." and text[at + 1 : at + 2].isdigit())) and (found := _NUMBER.match(text, at)):
        return "number", found.end()
    if found := _NAME.match(text, at):
        return "name", found.end()
    if char == "/" and _begins_value(previous) and (found := _REGEX.match(text, at)):
        return "regex", found.end()
    found = _MARK.match(text, at)
    return "mark", found.end() if found else at + 1


def _begins_value(previous: Token | None) -> bool:
    """Whether a value may stand here, so that a slash begins a regular expression."""
    if previous is None:
        return True
    if previous.kind == "name":
        return previous.text in _BEFORE_VALUE
    return previous.kind == "mark" and previous.text not in {")", "]", "}"}


def _end_of_template(text: str, at: int) -> int:
    at += 1
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text[at] == "`":
            return at + 1
        elif text.startswith("${", at):
            at = _end_of_hole(text, at + 2)
        else:
            at += 1
    return at


def _end_of_hole(text: str, at: int) -> int:
    depth = 1
    while at < len(text) and depth:
        char = text[at]
        if char == "`":
            at = _end_of_template(text, at)
            continue
        if char in "\"'" and (found := _STRING.match(text, at)):
            at = found.end()
            continue
        depth += (char == "{") - (char == "}")
        at += 1
    return at
