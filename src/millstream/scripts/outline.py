"""The outline of a script: which functions and constants stand at its top level, and whether anything there can keep state.

State is what one row leaves for the next: `let` and `var` at the top level, and constants whose value is made by a call or by `new`, such
as a Map, and regular expressions with the flag `g` or `y`. Constants that are written down (numbers, texts, objects, arrays) are frozen
when the script starts. A script with state works, and counts as non-deterministic. Tokens cannot tell everything: so every batch begins
with a script of its own, and rows of a script are never read again for those who watch them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from millstream.scripts.tokens import Token

_PURE_CALLS = {"BigInt", "Number", "String", "Boolean", "Symbol", "parseInt", "parseFloat"}
_BEFORE_BLOCK = {"if", "for", "while", "switch", "catch", "with"}
_OPENING, _CLOSING = {"(", "[", "{"}, {")", "]", "}"}


@dataclass(frozen=True)
class Outline:
    functions: tuple[Token, ...]
    """The names of the functions, in order."""
    constants: tuple[str, ...]
    """All other names that are declared."""
    state: Token | None
    """The first place that can keep state."""
    modules: Token | None
    """The first `import`."""
    exports: tuple[Token, ...]
    expression: bool
    """The text is one function without a name."""


def outline_of(tokens: Sequence[Token]) -> Outline:
    functions: list[Token] = []
    constants: list[str] = []
    exports: list[Token] = []
    state: Token | None = None
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.text == "export" and token.kind == "name":
            exports.append(token)
            if at + 1 < len(tokens) and tokens[at + 1].text == "default":
                exports.append(tokens[at + 1])
                at += 1
            at += 1
        elif name := _function_name(tokens, at):
            functions.append(name)
            at = _end_of_function(tokens, at)
        elif token.text == "class" and at + 1 < len(tokens):
            end = _end_of_function(tokens, at)
            constants.append(tokens[at + 1].text)
            state = state or _state_in(tokens[at:end])
            at = end
        elif end := _end_of_enum(tokens, at):
            constants.append(tokens[at + 1].text)
            at = end
        elif token.text in {"const", "let", "var"} and at + 1 < len(tokens):
            end = _end_of_statement(tokens, at)
            is_function = _is_function(tokens, at)
            (functions.append(tokens[at + 1]) if is_function else constants.extend(_declared(tokens, at, end)))
            state = state or (token if token.text != "const" else _state_in(tokens[at + 1 : end]))
            at = end
        else:
            end = _end_of_statement(tokens, at)
            state = state or _state_in(tokens[at:end])
            at = end
    modules = next((each for index, each in enumerate(tokens) if each.text == "import" and _is_word(tokens, index)), None)
    return Outline(tuple(functions), tuple(constants), state, modules, tuple(exports), not functions and _is_lone_function(tokens))


def _is_word(tokens: Sequence[Token], at: int) -> bool:
    """Whether a word of the language stands here, and not the name of a field."""
    after_dot = at > 0 and tokens[at - 1].text in {".", "?."}
    return tokens[at].kind == "name" and not after_dot and not (at + 1 < len(tokens) and tokens[at + 1].text == ":")


def _function_name(tokens: Sequence[Token], at: int) -> Token | None:
    """The name of a function that is declared here."""
    if tokens[at].text == "async" and at + 1 < len(tokens) and tokens[at + 1].text == "function":
        at += 1
    if tokens[at].text != "function":
        return None
    at += 2 if at + 1 < len(tokens) and tokens[at + 1].text == "*" else 1
    return tokens[at] if at < len(tokens) and tokens[at].kind == "name" else None


def _is_function(tokens: Sequence[Token], at: int) -> bool:
    """Whether a declaration gives a name to a function: `const f = (row) => …`, `const f: F = row => …`, `const f = function …`."""
    depth, start = 0, at + 1
    for index in range(start, len(tokens)):
        text = tokens[index].text
        depth += (text in _OPENING) - (text in _CLOSING)
        if text == "=" and depth == 0:
            return _begins_function(tokens, index + 1)
        if text == ";" and depth == 0:
            return False
    return False


def _begins_function(tokens: Sequence[Token], at: int) -> bool:
    if at < len(tokens) and tokens[at].text == "async":
        at += 1
    if at >= len(tokens):
        return False
    if tokens[at].text == "function":
        return True
    if tokens[at].text == "(":
        close = _matching(tokens, at)
        return _arrow_follows(tokens, close + 1)
    return tokens[at].kind == "name" and at + 1 < len(tokens) and tokens[at + 1].text == "=>"


def _arrow_follows(tokens: Sequence[Token], at: int) -> bool:
    """Whether an arrow follows a list of parameters, perhaps after the type of the result."""
    if at < len(tokens) and tokens[at].text == "=>":
        return True
    if at >= len(tokens) or tokens[at].text != ":":
        return False
    for index in range(at, min(len(tokens), at + 200)):
        if tokens[index].text == "=>":
            return True
        if tokens[index].text == ";":
            return False
    return False


def _is_lone_function(tokens: Sequence[Token]) -> bool:
    at = 0
    if tokens and tokens[0].text == "export":
        at = 2 if len(tokens) > 1 and tokens[1].text == "default" else 1
    while at < len(tokens) and tokens[at].text == "(" and not _begins_function(tokens, at):
        at += 1
    return _begins_function(tokens, at)


def _end_of_enum(tokens: Sequence[Token], at: int) -> int:
    """Behind an enum of TypeScript, which is stripped to `var E = function(E) { … }(E || {});`; 0 when none begins here."""
    begins = [token.text for token in tokens[at : at + 6]]
    if len(begins) < 6 or begins[0] != "var" or begins[2:] != ["=", "function", "(", begins[1]]:
        return 0
    return _end_of_statement(tokens, at)


def _declared(tokens: Sequence[Token], at: int, end: int) -> list[str]:
    """The names that a statement declares; those taken out of an object are found by their place."""
    found, depth, expecting = [], 0, True
    if at + 1 < end and tokens[at + 1].text in {"{", "["}:
        close = _matching(tokens, at + 1)
        return [
            each.text for index, each in enumerate(tokens[at + 2 : close], at + 2) if each.kind == "name" and tokens[index + 1].text != ":"
        ]
    for token in tokens[at + 1 : end]:
        if expecting and depth == 0 and token.kind == "name":
            found.append(token.text)
            expecting = False
        depth += (token.text in _OPENING) - (token.text in _CLOSING)
        if token.text in {"=", ":"} and depth == 0:
            expecting = False
        if token.text == "," and depth == 0:
            expecting = True
    return found


def _end_of_function(tokens: Sequence[Token], at: int) -> int:
    """Behind the body of the function or class that begins here."""
    depth = 0
    for index in range(at, len(tokens)):
        text = tokens[index].text
        if text == "{" and depth == 0:
            return _matching(tokens, index) + 1
        depth += (text in {"(", "["}) - (text in {")", "]"})
        if text == ";" and depth == 0:  # an overload, which has no body
            return index + 1
    return len(tokens)


def _end_of_statement(tokens: Sequence[Token], at: int) -> int:
    depth = 0
    for index in range(at, len(tokens)):
        token = tokens[index]
        if depth == 0 and index > at and token.after_break and _begins_statement(token, tokens[index - 1]):
            return index
        depth += (token.text in _OPENING) - (token.text in _CLOSING)
        if token.text == ";" and depth == 0:
            return index + 1
    return len(tokens)


def _begins_statement(token: Token, before: Token) -> bool:
    """Whether a token on a new line begins another statement."""
    if token.text in {"const", "let", "var", "function", "class", "async", "export", "import", "interface", "type", "enum"}:
        return before.text not in {"=", "=>", "(", ",", "+", ":", "export", "default", "declare"}
    return token.kind == "name" and (before.kind != "mark" or before.text in _CLOSING) and before.text not in {"const", "let", "var"}


def _matching(tokens: Sequence[Token], at: int) -> int:
    depth = 0
    for index in range(at, len(tokens)):
        depth += (tokens[index].text in _OPENING) - (tokens[index].text in _CLOSING)
        if depth == 0:
            return index
    return len(tokens) - 1


def _state_in(tokens: Sequence[Token]) -> Token | None:
    """The first call, `new` or variable of its own that is made when the statement is evaluated: bodies of functions are left out."""
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.text == "=>":
            at = _end_of_arrow(tokens, at + 1)
            if at < len(tokens) and tokens[at].text == ")" and at + 1 < len(tokens) and tokens[at + 1].text == "(":
                return tokens[at + 1]  # a function that is called where it stands
            continue
        if token.text == "function":
            at = _end_of_function(tokens, at)
            continue
        if token.text == "class" and _is_word(tokens, at):
            end = _end_of_function(tokens, at)
            if found := _state_in_class(tokens[at:end]):
                return found
            at = end
            continue
        if token.text == "new" or _keeps(tokens, at):
            return token
        if token.text == "(" and at > 0 and (tokens[at - 1].kind == "name" or tokens[at - 1].text in {")", "]"}):
            if _is_method(tokens, at):
                at = _matching(tokens, _matching(tokens, at) + 1) + 1
                continue
            if tokens[at - 1].text not in _PURE_CALLS and not _is_parameters(tokens, at):
                return tokens[at - 1]
        at += 1
    return None


def _keeps(tokens: Sequence[Token], at: int) -> bool:
    """Whether a token by itself can keep state, or call what does."""
    token = tokens[at]
    if token.kind == "regex":
        return bool(set("gy") & set(token.text.rpartition("/")[2]))  # it keeps the place of its last match
    if token.kind == "template":
        tagged = at > 0 and (tokens[at - 1].kind == "name" or tokens[at - 1].text in {")", "]"})
        return tagged or ("${" in token.text and "(" in token.text)
    return token.text in {"let", "const", "var"} and _is_word(tokens, at)  # of a block


def _state_in_class(tokens: Sequence[Token]) -> Token | None:
    """The first static member of a class, or what its head calls."""
    head = next((at for at, token in enumerate(tokens) if token.text == "{"), len(tokens))
    return next((each for each in tokens[head:] if each.text == "static"), None) or _state_in(tokens[1:head])


def _is_method(tokens: Sequence[Token], at: int) -> bool:
    """Whether brackets behind a name are those of a method in an object."""
    close = _matching(tokens, at)
    return tokens[at - 1].text not in _BEFORE_BLOCK and close + 1 < len(tokens) and tokens[close + 1].text == "{"


def _is_parameters(tokens: Sequence[Token], at: int) -> bool:
    """Whether brackets behind a name are those of `async (row) =>`, or of a method in an object."""
    close = _matching(tokens, at)
    return _arrow_follows(tokens, close + 1) or (close + 1 < len(tokens) and tokens[close + 1].text == "{")


def _end_of_arrow(tokens: Sequence[Token], at: int) -> int:
    if at < len(tokens) and tokens[at].text == "{":
        return _matching(tokens, at) + 1
    depth = 0
    for index in range(at, len(tokens)):
        text = tokens[index].text
        if depth == 0 and text in {",", ";", ")", "]", "}"}:
            return index
        depth += (text in _OPENING) - (text in _CLOSING)
    return len(tokens)
