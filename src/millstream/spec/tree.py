"""Parses YAML into a tree with positions.

PyYAML's composer provides the marks; scalars are resolved here by YAML 1.2's rules, so that `on`, `no`, `12:30` and `2026-01-01` are text.
Duplicate keys, tabs, exploding anchors and oversized files are reported before anything is built.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from millstream.errors import Diagnostic, Span, SpecError
from millstream.secrets import mask_line
from millstream.spec.yaml_errors import explain

MAX_BYTES = 2 << 20
MAX_VALUES = 100_000
MAX_DEPTH = 100
MAX_DIGITS = 1_000
_INT = re.compile(r"[-+]?\d[\d_]*|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\d[\d_]*\.\d*|\.\d+|\d[\d_]*(?=[eE]))([eE][-+]?\d+)?")
_WORDS: dict[str, Any] = {"": None, "~": None, "null": None, "true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Scalar:
    value: Any
    span: Span
    plain: bool = True
    """Unquoted: its type follows from its text."""
    lines: tuple[Span, ...] = ()
    """The position of each line of a text."""


@dataclass(frozen=True, slots=True)
class Items:
    items: tuple[Tree, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Map:
    entries: dict[str, Tree]
    keys: dict[str, Span]
    span: Span


Tree = Scalar | Items | Map


@dataclass
class TreeReader:
    """Builds a tree from text, and collects its problems."""

    file: str
    text: str
    problems: list[Diagnostic] = field(default_factory=list)
    _shown: dict[int, str] = field(default_factory=dict)
    """Lines in a form that messages may show: one line can contain hundreds of values."""

    def read(self) -> Tree | None:
        if len(self.text) > MAX_BYTES:
            size = f"{len(self.text) / (1 << 20):.1f} MB"
            raise SpecError(
                Diagnostic("MS004", f"`{self.file}` has {size}, more than a pipeline can have (2 MB)", help="it may be a data file")
            )
        self._lines = self.text.split("\n")
        node = self._compose()
        if node is None:
            return None
        self._refuse_explosion(node)
        return self._tree(node)

    def line_spans(self) -> tuple[Span, ...]:
        """The place of every line."""
        self._lines = self.text.split("\n")
        return tuple(self._span(number, 0, len(line)) for number, line in enumerate(self._lines))

    def span(self, node: Any) -> Span:
        start, end = node.start_mark, node.end_mark
        width = end.column if end.line == start.line else len(self._line(start.line))
        return self._span(start.line, start.column, width)

    def _compose(self) -> Any:
        loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
        try:
            return yaml.compose(self.text, Loader=loader)
        except yaml.MarkedYAMLError as error:
            raise SpecError(self._syntax(error)) from None
        except RecursionError:
            raise SpecError(Diagnostic("MS004", f"`{self.file}` is nested too deeply")) from None
        except yaml.YAMLError as error:
            raise SpecError(Diagnostic("MS002", f"`{self.file}` is not YAML: {str(error).splitlines()[0]}")) from None

    def _syntax(self, error: yaml.MarkedYAMLError) -> Diagnostic:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line, mark.column) if mark else (0, 0)
        text = self._line(line)
        if "\t" in text[: len(text) - len(text.lstrip())]:
            start = text.index("\t")
            return Diagnostic("MS002", "a tab indents this line", self._span(line, start, start + 1), help="YAML indents with spaces only")
        opened = error.context_mark.line + 1 if error.context_mark else line + 1
        reason, help_ = explain(str(error.problem or error.context or "not YAML"), self._lines, line, opened)
        return Diagnostic("MS002", reason, self._span(line, column, column + 1), help=help_)

    def _refuse_explosion(self, root: Any) -> None:
        """Anchors are shared nodes, so the expanded size is known without expanding."""
        sizes: dict[int, int] = {}

        def size(node: Any, above: frozenset[int]) -> int:
            if len(above) > MAX_DEPTH:
                raise SpecError(Diagnostic("MS004", f"more than {MAX_DEPTH} levels are nested here", self.span(node)))
            if id(node) in above:
                raise SpecError(Diagnostic("MS004", "an anchor contains itself", self.span(node)))
            if id(node) not in sizes:
                inner = above | {id(node)}
                sizes[id(node)] = 1 + sum(size(child, inner) for child in _children(node))
            return sizes[id(node)]

        if size(root, frozenset()) > MAX_VALUES:
            help_ = "write repeated parts out, or generate the file"
            raise SpecError(Diagnostic("MS004", f"`{self.file}` expands to more than {MAX_VALUES:,} values", help=help_))

    def _tree(self, node: Any) -> Tree:
        if isinstance(node, yaml.MappingNode):
            return self._map(node)
        if isinstance(node, yaml.SequenceNode):
            return Items(tuple(self._tree(child) for child in node.value), self.span(node))
        plain = not node.style
        if plain and len(node.value) > MAX_DIGITS and _INT.fullmatch(node.value):
            self.problems.append(Diagnostic("MS004", f"a number has more than {MAX_DIGITS:,} digits", self.span(node), help="quote a text"))
            return Scalar(node.value, self.span(node))
        value = resolve(node.value) if plain else node.value
        return Scalar(value, self.span(node), plain, tuple(self._text_lines(node)))

    def _map(self, node: Any) -> Map:
        entries: dict[str, Tree] = {}
        keys: dict[str, Span] = {}
        for key, child in node.value:
            name, span = str(key.value), self.span(key)
            if name == "<<":
                merged = self._tree(child)
                for source in merged.items if isinstance(merged, Items) else (merged,):
                    if isinstance(source, Map):
                        entries = source.entries | entries
                        keys = source.keys | keys
                continue
            if name in keys and keys[name].line >= node.start_mark.line + 1:
                self.problems.append(
                    Diagnostic("MS003", f"`{name}` appears twice", span, detail=f"the first one is in line {keys[name].line}")
                )
            entries[name], keys[name] = self._tree(child), span
        return Map(entries, keys, self.span(node))

    def _text_lines(self, node: Any) -> Iterator[Span]:
        """The positions of the lines of a literal block, or of a text on one line."""
        start = node.start_mark
        if node.style == "|":
            content = [self._line(start.line + 1 + i) for i in range(node.value.rstrip("\n").count("\n") + 1)]
            indent = min((len(text) - len(text.lstrip()) for text in content if text.strip()), default=0)
            yield from (self._span(start.line + 1 + i, indent, len(text)) for i, text in enumerate(content))
        elif start.line == node.end_mark.line:
            quote = 1 if node.style in {"'", '"'} else 0
            if self._line(start.line)[start.column + quote :].startswith(node.value):  # escapes would move the columns
                yield self._span(start.line, start.column + quote, node.end_mark.column)

    def _line(self, number: int) -> str:
        return self._lines[number] if number < len(self._lines) else ""

    def _span(self, line: int, column: int, end: int) -> Span:
        if line not in self._shown:
            self._shown[line] = mask_line(self._line(line).rstrip("\r").replace("\t", " "))
        return Span(self.file, line + 1, column + 1, max(end, column + 1) + 1, self._shown[line])


def text_scalar(file: str, text: str) -> Scalar:
    """The text of a whole file as one value."""
    reader = TreeReader(file, text)
    lines = reader.line_spans()
    return Scalar(text, lines[0], False, lines)


def resolve(text: str) -> Any:
    """The value of an unquoted word."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _INT.fullmatch(text):
        return int(text.replace("_", ""), 16 if text.startswith("0x") else 10)
    return float(text.replace("_", "")) if _FLOAT.fullmatch(text) else text


def plain(tree: Tree) -> Any:
    """The values without positions."""
    if isinstance(tree, Map):
        return {name: plain(child) for name, child in tree.entries.items()}
    if isinstance(tree, Items):
        return [plain(child) for child in tree.items]
    return tree.value


def locate(tree: Tree, path: tuple[Any, ...], key: bool = False) -> Span:
    """The position of a value, or of its key; of the nearest enclosing value when the path does not exist."""
    for index, step in enumerate(path):
        if isinstance(tree, Map) and str(step) in tree.entries:
            if key and index == len(path) - 1:
                return tree.keys[str(step)]
            tree = tree.entries[str(step)]
        elif isinstance(tree, Items) and isinstance(step, int) and step < len(tree.items):
            tree = tree.items[step]
    return tree.span


def locate_in_text(tree: Tree, path: tuple[Any, ...], line: int, column: int, width: int) -> Span:
    """The position of a part of a text, by line and column in that text from 1; of the whole text when its lines have no positions."""
    text = descend(tree, path)
    if not isinstance(text, Scalar) or not 0 < line <= len(text.lines):
        return locate(tree, path)
    base = text.lines[line - 1]
    start = base.column + column - 1
    return replace(base, column=start, end=start + max(1, width))


def _children(node: Any) -> Iterator[Any]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield key
            yield value
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value


def descend(tree: Tree, path: tuple[Any, ...]) -> Tree | None:
    """The value at a path; None when there is none."""
    current: Tree | None = tree
    for step in path:
        if isinstance(current, Map):
            current = current.entries.get(str(step))
        elif current is not None and not isinstance(current, Map) and isinstance(step, int) and hasattr(current, "items"):
            current = current.items[step] if step < len(current.items) else None
    return current
