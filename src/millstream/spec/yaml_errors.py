"""Explains YAML errors in terms of the lines and not of the parser."""

from __future__ import annotations

from collections.abc import Sequence


def explain(problem: str, lines: Sequence[str], line: int, opened: int) -> tuple[str, str]:
    """A sentence and the likely fix. `line` counts from 0; `opened` is the number of the line in which the unfinished part begins."""
    text = lines[line] if line < len(lines) else ""
    if "${" in text and ("{" in text.split("${")[0] or problem.startswith("did not find expected ',' ")):
        return _parser_message(problem), 'inside {…} quote a variable: "${NAME}"'
    if problem == "did not find expected key":
        return _explain_indentation(text, lines[:line], opened)
    if problem == "mapping values are not allowed in this context":
        return "this line has a second `:`, or its indentation is wrong", 'quote a text that contains `: `, such as "a: b"'
    if "expected ',' or '}'" in problem or "expected ',' or ']'" in problem:
        closing = "}" if "}" in problem else "]"
        bracket = "{" if closing == "}" else "["
        where = f"the `{bracket}` of line {opened}" if opened else f"a `{bracket}`"
        return f"{where} is not closed, or a comma is missing", f"add `{closing}` or `,` before this place"
    if problem.startswith("found character that cannot start any token"):
        return "a value cannot begin with this character", "quote the text"
    if problem.startswith("could not find expected ':'"):
        return "a key has no `:`", "write `key: value`; quote a text over several lines, or begin it with `|`"
    return _parser_message(problem), ""


def _explain_indentation(text: str, before: Sequence[str], opened: int) -> tuple[str, str]:
    """A line that is not a key of the block around it."""
    indent = len(text) - len(text.lstrip())
    levels = sorted({len(line) - len(line.lstrip()) for line in before if line.strip()})
    if indent not in levels:
        known = ", ".join(str(level) for level in levels if level <= indent + 8)
        spaces = f"{indent} space{'' if indent == 1 else 's'}"
        return f"this line is indented by {spaces}, and no line above it is", f"the keys of one block begin in the same column: {known}"
    help_ = "a quote, a `:` or a `- ` may be missing above; quote a whole text that begins with a quote, or contains `: ` or ` #`"
    return f"this line does not continue the block that begins in line {opened}", help_


def _parser_message(problem: str) -> str:
    return problem.replace("'", "`")
