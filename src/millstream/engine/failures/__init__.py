"""Translates Spark's exceptions into one diagnostic: the node, its line in the pipeline, the cause, and the user's own Python frame.

Marks in the text name the failed node. Components recognise the failures of their own systems. Spark's exceptions contain the statement and
the position in it. The JVM's trace stays in the log; `--debug` shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from millstream.engine.failures import machine, scripts, sql, user_code
from millstream.engine.failures.query_context import query_context
from millstream.engine.failures.scene import Scene
from millstream.engine.failures.text import first_line, text_of
from millstream.errors import Diagnostic, MillstreamError, RunError, TemporaryError
from millstream.plan.components.failure import Failure
from millstream.plan.nodes import AnyNode
from millstream.secrets import Redactor
from millstream.worker import marks
from millstream.worker.remote_errors import restore_error

__all__ = ["Translator", "text_of"]

Recogniser = Callable[[str, Scene], Diagnostic | None]
_BEFORE_COMPONENTS: tuple[Recogniser, ...] = (
    user_code.refused_row,
    user_code.function_of_sql,
    scripts.failed_script,
    user_code.function_of_node,
    user_code.dead_worker,
    user_code.unstarted_worker,
    machine.memory,
    machine.lost_rows,
    machine.disk,
)
_AFTER_COMPONENTS: tuple[Recogniser, ...] = (
    machine.file_system,
    sql.ambiguous_value,
    sql.failed_row,
    sql.rejected_plan,
    machine.network,
)


@dataclass(frozen=True, slots=True)
class Translator:
    """Turns exceptions of a query into diagnostics."""

    nodes: Sequence[AnyNode]
    pipeline: str
    redact: Redactor
    statements: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Node → the SQL that it passed to Spark."""

    def translate(self, error: BaseException, where: str) -> RunError:
        """The failure as one diagnostic. `where` is the node that the engine was running."""
        scene = Scene(self.nodes, where, self.statements, query_context(error))
        if isinstance(error, MillstreamError):
            kind = type(error) if isinstance(error, RunError) else RunError
            return kind([self._own(found, scene) for found in error.diagnostics])
        if carried := restore_error(text_of(error)):  # before secrets are hidden: one may be a word of the mark
            named = marks.find(marks.NODE, text_of(error))
            return self.translate(carried[1], carried[0] or (named[1].split()[0] if named else where))
        text = self.redact(text_of(error))
        return (
            self._recognise(_BEFORE_COMPONENTS, text, scene)
            or self._by_components(text, scene)
            or self._recognise(_AFTER_COMPONENTS, text, scene)
            or RunError(self._unknown(text, scene))
        )

    def _own(self, found: Diagnostic, scene: Scene) -> Diagnostic:
        """A diagnostic that a component raised: placed at its node unless it has a place, and with secrets removed."""
        node = scene.current
        placed = found.at(node.span if node else None, node.name if node else "")
        return replace(placed, message=self.redact(found.message), detail=self.redact(found.detail), help=self.redact(found.help))

    def _recognise(self, recognisers: Sequence[Recogniser], text: str, scene: Scene) -> RunError | None:
        found = next((diagnostic for recognise in recognisers if (diagnostic := recognise(text, scene))), None)
        if found is None:
            return None
        return (TemporaryError if found.code == "MS069" else RunError)(self._with_place(found))

    def _by_components(self, text: str, scene: Scene) -> RunError | None:
        """A failure of an outside system. The current node is asked first; if several other nodes recognise it, the message names all."""
        current = scene.current
        if current is not None and (failure := current.component.recognise(text)):
            return self._error(failure, [current])
        known = [(node, failure) for node in scene.nodes if (failure := node.component.recognise(text))]
        if not known:
            return None
        failure = known[0][1]
        return self._error(failure, [node for node, other in known if other.code == failure.code])

    def _error(self, failure: Failure, nodes: Sequence[AnyNode]) -> RunError:
        names = " or ".join(f"`{node.name}`" for node in nodes)
        only = nodes[0] if len(nodes) == 1 else None
        place = (only.place(failure.option) if failure.option else only.span) if only else None
        found = Diagnostic(failure.code, failure.message.replace("{node}", names), place, detail=failure.detail, help=failure.help)
        kind = TemporaryError if failure.temporary else RunError
        return kind(self._with_place(replace(found, node=only.name if only else "")))

    def _unknown(self, text: str, scene: Scene) -> Diagnostic:
        node = scene.current
        message, help_ = f"Spark stopped the query: {first_line(text)}", "`--debug` shows the whole trace"
        return self._with_place(Diagnostic("MS079", message, node.span if node else None, help=help_, node=node.name if node else ""))

    def _with_place(self, found: Diagnostic) -> Diagnostic:
        detail = f"{found.detail}\npipeline: {self.pipeline}" if found.detail else f"pipeline: {self.pipeline}"
        return replace(found, detail=detail)
