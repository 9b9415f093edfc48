"""Hides secrets in foreign text.

The messages of user code are masked on the worker that raises them: no plan, log or page of Spark contains a secret. The values are pickled
inside the function, never written as literals of a plan.
"""

from __future__ import annotations

import re

MASK = "***"
_SHORT = 8
"""A secret with fewer characters may also be a common word."""
_NAMING = r"\b(?:database|dbname|user|username|role|schema|table|relation|topic|host)(?: name)?\s?[=:]?\s?[`\"']?"
_PUBLIC = re.compile(rf"(?:{_NAMING}|//|[\w\]]:\d+/)$", re.IGNORECASE)
"""Text before a word that is not a password although it may be equal to one: `database "dev"`, `user=dev`, `host:5432/dev`."""


def hide(text: str, values: tuple[str, ...]) -> str:
    """The text without the values. A long value is replaced everywhere. A short one may be a common word: it is replaced only as a whole
    word, and not where the text before it shows that it is a name.
    """
    for value in values:
        text = text.replace(value, MASK) if len(value) >= _SHORT else _without_word(text, value)
    return text


def _without_word(text: str, value: str) -> str:
    def replaced(found: re.Match[str]) -> str:
        before, after = text[max(0, found.start() - 60) : found.start()], text[found.end() :]
        public = _PUBLIC.search(before) and "http" not in before and not (before.endswith("//") and not after.startswith(":"))
        return value if public else MASK

    edges = (r"(?<!\w)" if value[0].isalnum() else "", r"(?!\w)" if value[-1].isalnum() else "")
    return re.sub(f"{edges[0]}{re.escape(value)}{edges[1]}", replaced, text)


def mask(error: BaseException, values: tuple[str, ...]) -> BaseException:
    """The exception to raise instead. The values are hidden in its arguments and in those of its causes; an exception whose message does
    not come from its arguments, such as an OSError, is replaced by a RuntimeError with the same message.
    """
    for each in exception_chain(error):
        each.args = tuple(hide(value, values) if isinstance(value, str) else value for value in each.args)
        if notes := getattr(each, "__notes__", None):
            each.__notes__ = [hide(str(note), values) for note in notes]
        if hide(str(each), values) != str(each):
            return RuntimeError(hide(f"{type(error).__name__}: {error}", values)).with_traceback(error.__traceback__)
    return error


def exception_chain(error: BaseException) -> list[BaseException]:
    """An exception, its causes and the members of exception groups, each once: a chain may contain a cycle."""
    found: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop(0)
        if each is not None and not any(each is known for known in found):
            found.append(each)
            waiting += [*(each.exceptions if isinstance(each, BaseExceptionGroup) else ()), each.__cause__ or each.__context__]
    return found
