"""Secrets are hidden in text that others have written.

The words of user code are masked on the worker, where they are made: no plan, log or page of Spark's ever holds a secret. The values travel
inside the pickled function, never as literals of a plan.
"""

from __future__ import annotations

import re

MASK = "***"
_SHORT = 8
"""Characters below which a secret may also be a common word."""
_NAMING = r"\b(?:database|dbname|user|username|role|schema|table|relation|topic|host)(?: name)?\s?[=:]?\s?[`\"']?"
_PUBLIC = re.compile(rf"(?:{_NAMING}|//|[\w\]]:\d+/)$", re.IGNORECASE)
"""What stands before a name that is no password although it may be the same word: `database "dev"`, `user=dev`, `host:5432/dev`."""


def hidden(text: str, values: tuple[str, ...]) -> str:
    """The text without the values. A long value is replaced wherever it stands. A short one may be a common word: it is replaced where it
    is a whole word, except where the text before it says that it is the name of something else.
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
    """The exception to raise instead. The values are hidden in its arguments and those of its causes; one whose words come from elsewhere,
    as those of an OSError do, is replaced by a RuntimeError with the same words.
    """
    for each in related(error):
        each.args = tuple(hidden(value, values) if isinstance(value, str) else value for value in each.args)
        if notes := getattr(each, "__notes__", None):
            each.__notes__ = [hidden(str(note), values) for note in notes]
        if hidden(str(each), values) != str(each):
            return RuntimeError(hidden(f"{type(error).__name__}: {error}", values)).with_traceback(error.__traceback__)
    return error


def related(error: BaseException) -> list[BaseException]:
    """An exception, its causes and the members of groups among them, each once: a chain may lead back to itself."""
    found: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop(0)
        if each is not None and not any(each is known for known in found):
            found.append(each)
            waiting += [*(each.exceptions if isinstance(each, BaseExceptionGroup) else ()), each.__cause__ or each.__context__]
    return found
