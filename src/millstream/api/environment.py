"""A `StreamEnvironment` is where a pipeline begins. It collects nodes; nothing runs before `execute()` or `collect()`.

env = StreamEnvironment("orders")
env.from_source(FileSource(path="orders", format="json")).filter(col("amount") > 100).to(PrintSink()).execute()
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pydantic import ValidationError

from millstream import registry
from millstream.api.call_site import caller
from millstream.api.cell import Cell, running_cell
from millstream.api.interrupts import interruptible
from millstream.api.progress import show_progress
from millstream.errors import Diagnostic, Span, SpecError
from millstream.observe.report import Report
from millstream.plan.components import Component, Sink, Source
from millstream.plan.components.side_output import SideOutput
from millstream.plan.components.udf import Udf
from millstream.plan.declarations import UserFunction, udf_function, user_function
from millstream.plan.error_policy import DeadLetter, OnError
from millstream.plan.event_time import EventTime
from millstream.plan.expressions import Expr, func
from millstream.plan.nodes import AnyNode, CommonOptions, NodeTelemetry, inputs_for, make_node
from millstream.plan.option_mistakes import mistakes
from millstream.plan.run_options import RunOptions
from millstream.plan.settings import Settings
from millstream.plan.side_outputs import SideOutputNode
from millstream.plan.topology import Topology
from millstream.plan.tracing import Trace
from millstream.rules.usage import used_nodes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.api.stream import DataStream


_TAKEN = "give each node a name of its own"


class StreamEnvironment:
    """The beginning of a pipeline. `spark` is a running session to use instead of a new one.

    In a program a name can be used for one node only (MS020). In a notebook and at a prompt, cells can run again: a cell that runs again
    first removes the nodes that it created before, and a name from another cell is replaced, so that streams which read the old node read
    the new one. `execute()` and `collect()` use only nodes that lead to what they run.
    """

    def __init__(
        self, name: str = "pipeline", *, settings: Settings | Mapping[str, Any] | None = None, spark: SparkSession | None = None
    ) -> None:
        self.name, self._spark = name, spark
        self.settings = settings if isinstance(settings, Settings) else Settings(**(settings or {}))
        self._nodes: dict[str, AnyNode] = {}
        self._functions: dict[str, UserFunction] = {}
        self._watching: dict[str, SideOutputNode] = {}
        self._cells: dict[tuple[str, str], Cell | None] = {}
        """("node" or "function", name) → the cell of a notebook that made it"""
        place = caller()
        self._directory = Path(place.file).parent if place and Path(place.file).is_file() else Path.cwd()

    def __repr__(self) -> str:
        """The names of its nodes by kind."""
        kinds = {kind: [name for name, node in self._nodes.items() if node.kind == kind] for kind in ("source", "transform", "sink")}
        told = "; ".join(f"{kind}s: {', '.join(names)}" for kind, names in kinds.items() if names)
        return f"StreamEnvironment({self.name!r}, {told or 'no nodes yet'})"

    def from_source(
        self,
        source: Source,
        name: str | None = None,
        *,
        primary_key: str | Iterable[str] = (),
        on_error: OnError = "fail",
        event_time: EventTime | None = None,
        trace: Trace | None = None,
    ) -> DataStream:
        """A stream of the rows of a source. `trace`: which of its records are traced."""
        chosen = self.add(source, (), name, primary_key, on_error)
        if trace is not None:
            self._set(chosen, telemetry=NodeTelemetry(trace=trace))
        if event_time is not None:
            self.declare(chosen, event_time)
        return self._stream(chosen)

    def from_rows(
        self,
        rows: Iterable[Mapping[str, Any]] | pa.Table,
        schema: pa.Schema | Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> DataStream:
        """A bounded stream of given rows: dictionaries, or an Arrow table."""
        memory = registry.Registry.installed().find("source", "memory")
        if isinstance(rows, pa.Table):
            return self.from_source(memory(batches=tuple(rows.to_batches()), schema=rows.schema), name or "rows")  # type: ignore[misc]  # a class
        return self.from_source(memory(rows=tuple(dict(row) for row in rows), schema=schema), name or "rows")  # type: ignore[misc]  # a class

    def dynamic_table(self, name: str, *, backend: str, **options: Any) -> str:
        """A table in which SQL looks up rows by its name, editable at any time: `dynamic_table_check('name', value)`. Options as in
        YAML.
        """
        model: Any = registry.Registry.installed().find("transform", "dynamic_table")
        return self.add(model(backend=backend, **options), (), name, (), "fail")

    def dead_letters(self, sink: Sink, name: str | None = None) -> DeadLetter:
        """A sink for rejects, to pass as `on_error`."""
        return DeadLetter(dead_letter=self.add(sink, (), name, (), "fail"))

    def function(
        self,
        function: Callable[..., Any] | str | Udf,
        name: str | None = None,
        *,
        returns: str | pa.DataType | None = None,
        aggregate: bool | None = None,
        deterministic: bool | None = None,
    ) -> Callable[..., Expr]:
        """A function of yours for SQL: one pyarrow Array per argument → one Array of equal length; or a plugin, which says itself what it
        returns. `name` is its SQL name, by default its own name; the result builds expressions: `double(col("x"))`.
        """
        options = {"function": function, "returns": returns, "aggregate": aggregate, "deterministic": deterministic}
        place = caller()
        cell = self._enter(place)
        chosen = name or _name_of(function)
        made = udf_function(chosen, function, place) if isinstance(function, Udf) else user_function(chosen, options, place)
        if chosen in self._functions:
            self._require_free(("function", chosen), self._functions[chosen].span, place, cell)
        self._functions[chosen], self._cells["function", chosen] = made, cell
        call: Callable[..., Expr] = getattr(func, chosen)
        return call

    def side_output(self, component: SideOutput, sources: str | Iterable[str] = (), name: str | None = None) -> str:
        """A plugin that sees the rows of sources, by their names; of all sources by default. The name that it has."""
        place = caller()
        cell = self._enter(place)
        chosen = name or component.type.rpartition(".")[2]
        if chosen in self._watching and cell is None:
            raise SpecError(_name_taken(chosen, self._watching[chosen].span, place))
        names = (sources,) if isinstance(sources, str) else tuple(sources)
        self._watching[chosen] = SideOutputNode(chosen, component, names, place)
        return chosen

    def topology(self) -> Topology:
        """The plan so far."""
        functions, watching = tuple(self._functions.values()), tuple(self._watching.values())
        return Topology(
            self.name,
            tuple(self._nodes.values()),
            self.settings,
            functions=functions,
            side_outputs=watching,
            directory=self._directory,
        )

    def execute(self, options: RunOptions | None = None) -> Report:
        """Run every stream that ends in a sink. Flows call this. Nodes that lead to no sink are ignored, and so are their mistakes."""
        topology = self.topology()
        used = used_nodes(topology) if topology.outputs else topology.by_name
        nodes = tuple(node for node in topology.nodes if node.name in used)
        watching = tuple(left for each in topology.side_outputs if (left := each.over(used)))
        return self._run(replace(topology, nodes=nodes, side_outputs=watching), options or RunOptions())

    def run_part(self, names: Iterable[str], settings: Settings) -> Report:
        """Run some of the nodes, as `collect` does, which side outputs do not see. Spark is kept for the next call."""
        chosen = set(names)
        nodes = tuple(node for node in self._nodes.values() if node.name in chosen)
        part = replace(self.topology(), nodes=nodes, settings=settings, side_outputs=())
        return self._run(part, RunOptions(keeps_spark=True))

    def _run(self, topology: Topology, options: RunOptions) -> Report:
        with interruptible(options.stop), show_progress(self.name, options) as watched:
            report: Report = registry.engine()(self._spark).run(topology, watched)
        return report

    def add(
        self, component: Component, inputs: tuple[str, ...], name: str | None, primary_key: str | Iterable[str], on_error: OnError
    ) -> str:
        """Register a node and return its name."""
        place = caller()
        cell = self._enter(place)
        chosen = name or self._free_name(component.type)
        node = make_node(chosen, component, inputs_for(component, inputs), _common(primary_key, on_error, chosen), place)
        if chosen in self._nodes:
            self._require_free(("node", chosen), self._nodes[chosen].span, place, cell)
        self._nodes[chosen], self._cells["node", chosen] = node, cell
        return chosen

    def declare(self, name: str, event_time: EventTime) -> None:
        """Give a node its event time."""
        self._set(name, event_time=event_time)

    def _set(self, name: str, **options: object) -> None:
        node = self._nodes[name]
        self._nodes[name] = replace(node, options=node.options.model_copy(update=options))

    def forget(self, name: str) -> None:
        """Remove a node."""
        del self._nodes[name], self._cells["node", name]

    def _enter(self, place: Span | None) -> Cell | None:
        """The running cell. If it ran before, the nodes of that run are removed."""
        cell = running_cell(place)
        if cell is not None:
            for what, name in [made for made, earlier in self._cells.items() if earlier is not None and cell.repeats(earlier)]:
                del self._cells[what, name]
                (self._nodes if what == "node" else self._functions).pop(name)
        return cell

    def _require_free(self, made: tuple[str, str], first: Span | None, place: Span | None, cell: Cell | None) -> None:
        """A program uses a name once, and so does each run of a cell."""
        if cell is None or self._cells[made] == cell:
            raise SpecError(_name_taken(made[1], first, place))

    def _free_name(self, base: str) -> str:
        """`filter`, then `filter_2`: the same program always gets the same names."""
        number, name = 1, base
        while name in self._nodes:
            number += 1
            name = f"{base}_{number}"
        return name

    def _stream(self, name: str) -> DataStream:
        from millstream.api.stream import DataStream

        return DataStream(self, name)


def _common(primary_key: str | Iterable[str], on_error: OnError, name: str) -> CommonOptions:
    try:
        return CommonOptions.model_validate({"primary_key": primary_key, "on_error": on_error})
    except ValidationError as error:
        raise SpecError(mistakes(error, CommonOptions, f"`{name}`")) from None


def _name_of(function: Callable[..., Any] | str | Udf) -> str:
    if isinstance(function, Udf):
        return function.type.rpartition(".")[2]
    return function.rpartition(":")[2] if isinstance(function, str) else str(getattr(function, "__name__", type(function).__name__))


def _name_taken(name: str, first: Span | None, second: Span | None) -> Diagnostic:
    where = f"the first one is in {first.file}:{first.line}" if first else ""
    return Diagnostic(
        "MS020",
        f"the name `{name}` is taken",
        second,
        detail=where,
        help=_TAKEN,
    )
