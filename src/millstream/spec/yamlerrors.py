"""What is wrong with YAML, in words about the lines and not about the parser."""

from __future__ import annotations

from collections.abc import Sequence


def explained(problem: str, lines: Sequence[str], line: int, opened: int) -> tuple[str, str]:
    """A sentence and the likely way out. `line` counts from 0; `opened` is the number of the line in which the unfinished part begins."""
    text = lines[line] if line < len(lines) else ""
    if "${" in text and ("{" in text.split("${")[0] or problem.startswith("did not find expected ',' ")):
        return _said(problem), 'inside {…} a variable is quoted: "${NAME}"'
    if problem == "did not find expected key":
        return _misplaced(text, lines[:line], opened)
    if problem == "mapping values are not allowed in this context":
        return "a second `:` stands in this line, or its indentation is wrong", 'quote a text that holds `: `, such as "a: b"'
    if "expected ',' or '}'" in problem or "expected ',' or ']'" in problem:
        closing = "}" if "}" in problem else "]"
        bracket = "{" if closing == "}" else "["
        where = f"the `{bracket}` of line {opened}" if opened else f"a `{bracket}`"
        return f"{where} is not closed, or a comma is missing", f"add `{closing}` or `,` before this place"
    if problem.startswith("found character that cannot start any token"):
        return "a value cannot begin with this character", "quote the text"
    if problem.startswith("could not find expected ':'"):
        return "a key has no `:`", "write `key: value`; a text over several lines is quoted or begins with `|`"
    return _said(problem), ""


def _misplaced(text: str, before: Sequence[str], opened: int) -> tuple[str, str]:
    """A line that is no key of the block around it."""
    indent = len(text) - len(text.lstrip())
    levels = sorted({len(line) - len(line.lstrip()) for line in before if line.strip()})
    if indent not in levels:
        known = ", ".join(str(level) for level in levels if level <= indent + 8)
        spaces = f"{indent} space{'' if indent == 1 else 's'}"
        return f"this line is indented by {spaces}, and no line above it is", f"the keys of one block begin in the same column: {known}"
    help_ = "is a quote, a `:` or a `- ` missing above? a text that begins with a quote, or holds `: ` or ` #`, is quoted as a whole"
    return f"this line does not go on with the block that begins in line {opened}", help_


def _said(problem: str) -> str:
    return problem.replace("'", "`")
