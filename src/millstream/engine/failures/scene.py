"""The context of a failure: the nodes of the query, the current node, and the SQL of each node."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from millstream.engine.failures.query_context import QueryContext
from millstream.errors import Span
from millstream.plan.nodes import AnyNode


@dataclass(frozen=True, slots=True)
class Scene:
    """A query that failed."""

    nodes: Sequence[AnyNode]
    where: str = ""
    """The node that the engine was running."""
    statements: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Node → the SQL that it passed to Spark."""
    context: QueryContext | None = None
    """The position in a statement at which Spark reported the failure."""

    def node(self, name: str) -> AnyNode | None:
        return next((node for node in self.nodes if node.name == name), None)

    @property
    def current(self) -> AnyNode | None:
        return self.node(self.where)

    @property
    def author(self) -> AnyNode | None:
        """The node that passed the failed statement to Spark; of several with the same statement, the one that was running."""
        context = self.context
        if context is None:
            return None
        found = [node for node in self.nodes if context.statement in self.statements.get(node.name, ())]
        return next((node for node in found if node.name == self.where), found[0] if found else None)

    @property
    def sql_place(self) -> Span | None:
        """The position in that node's text."""
        node, context = self.author, self.context
        if node is None or context is None:
            return None
        likely = sorted(_texts(node), key=lambda pair: (not context.statement.startswith(pair[1]), context.fragment not in pair[1]))
        for option, text in likely:
            if at := context.within(text):
                width = len(context.fragment.splitlines()[0]) if context.fragment else 1
                return node.text_place(*option, line=at[0], column=at[1], width=width)
        return node.place("sql")

    def call_of(self, names: Iterable[str]) -> tuple[AnyNode, Span | None] | None:
        """The one node that calls a function, and where; None if several do. `names`: what the function is called."""
        pattern = re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, names))})(?=\s*\()", re.IGNORECASE)
        found = [(node, option, text, at) for node in self.nodes for option, text in _texts(node) for at in pattern.finditer(text)]
        if len(found) != 1:
            return None
        ((node, option, text, at),) = found
        line, column = text.count("\n", 0, at.start()) + 1, at.start() - text.rfind("\n", 0, at.start())
        return node, node.text_place(*option, line=line, column=column, width=len(at[0]))

    def place(self, node: AnyNode | None, *path: str) -> Span | None:
        return node.place(*path) if node else None


def _texts(node: AnyNode) -> list[tuple[tuple[str, ...], str]]:
    """The options of a node that hold SQL, each with its text."""
    found: list[tuple[tuple[str, ...], str]] = []
    for option in ("sql", "where", "columns", "aggregate", "routes"):
        value = getattr(node.component, option, None)
        if isinstance(value, str):
            found.append(((option,), value))
        elif isinstance(value, dict):
            found += [((option, str(name)), text) for name, text in value.items() if isinstance(text, str)]
    return found
