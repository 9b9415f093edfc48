"""Marks in the texts of exceptions.

Spark converts an exception on a worker, and a row that an expression refuses, to text. A mark in that text names the failed node or
function; the driver searches for it. All marks are written and read here.
"""

from __future__ import annotations

import re

NODE = "millstream-node"
"""The node whose function failed."""
FUNCTION = "millstream-function"
"""The function that SQL called."""
AT_KEY = "millstream-at-key"
"""The key that was being processed."""
WRONG_SCHEMA = "millstream-schema"
"""A node's function returned columns that do not match its declaration."""
WRONG_RESULT = "millstream-result"
"""A SQL function returned a value that does not match its declaration."""
TIMEOUT = "millstream-timeout"
STATE = "millstream-state"
"""The state in the checkpoint does not match the function's declaration."""
UNKNOWN_SCHEMA = "millstream-schema-id"
"""A message has a schema id that has not been looked up yet."""
SCRIPT = "millstream-script"
"""What failed in a script: JSON with code, message, line, column and row."""
_REFUSAL = "millstream-refusal"
_REFUSED = re.compile(rf"(?:\[USER_RAISED_EXCEPTION\] |Error: ){_REFUSAL}: (MS\d+) (\S+) (\S+): (.*?)(?= SQLSTATE|\n|$)")


def write(mark: str, text: str) -> str:
    """A mark with its text, for a note on an exception."""
    return f"{mark}: {text}"


def find(mark: str, text: str) -> re.Match[str] | None:
    """The first occurrence of a mark; group 1 is its text, to the end of the line."""
    return re.search(rf"{mark}: ([^\n]+)", text)


def refusal(code: str, node: str, option: str) -> str:
    """The beginning of a refused row's text; the sentence about the row follows. `option` is the option that the user can change."""
    return f"{_REFUSAL}: {code} {node} {option}: "


def find_refusal(text: str) -> re.Match[str] | None:
    """The refused row in a text: code, node, option and sentence."""
    return _REFUSED.search(text)
