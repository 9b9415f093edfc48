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
from millstream.api.places import caller
from millstream.errors import Diagnostic, Span, SpecError
from millstream.observe.report import Report
from millstream.plan.components import Component, Sink, Source
from millstream.plan.declarations import UserFunction, user_function
from millstream.plan.document import inputs_for
from millstream.plan.expressions import Expr, func
from millstream.plan.mistakes import mistakes
from millstream.plan.nodes import CommonOptions, DeadLetter, Node, OnError
from millstream.plan.rules import used_nodes
from millstream.plan.running import RunOptions
from millstream.plan.settings import Settings
from millstream.plan.time import EventTime
from millstream.plan.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.api.stream import DataStream


_TAKEN = "give each node a name of its own; a notebook's cell that is run again makes a new `StreamEnvironment` first"


class StreamEnvironment:
    """The beginning of a pipeline. `spark` is a running session to use instead of one of its own."""

    def __init__(self, name: str = "pipeline", *, settings: Settings | None = None, spark: SparkSession | None = None) -> None:
        self.name, self.settings, self._spark = name, settings or Settings(), spark
        self._nodes: dict[str, Node] = {}
        self._functions: dict[str, UserFunction] = {}
        place = caller()
        self._directory = Path(place.file).parent if place and Path(place.file).is_file() else Path.cwd()

    def __repr__(self) -> str:
        return f"StreamEnvironment({self.name!r}: {', '.join(self._nodes) or 'no nodes yet'})"

    def from_source(
        self,
        source: Source,
        name: str | None = None,
        *,
        primary_key: str | Iterable[str] = (),
        on_error: OnError = "fail",
        event_time: EventTime | None = None,
    ) -> DataStream:
        """A stream of the rows of a source."""
        chosen = self.add(source, (), name, primary_key, on_error)
        if event_time is not None:
            self.declare(chosen, event_time)
        return self._stream(chosen)

    def from_rows(
        self,
        rows: Iterable[Mapping[str, Any]] | pa.Table,
        schema: pa.Schema | Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> DataStream:
        """A finite stream of rows at hand: dictionaries, or an Arrow table."""
        memory = registry.Registry.installed().find("source", "memory")
        if isinstance(rows, pa.Table):
            return self.from_source(memory(batches=tuple(rows.to_batches()), schema=rows.schema), name or "rows")  # type: ignore[misc]  # a class
        return self.from_source(memory(rows=tuple(dict(row) for row in rows), schema=schema), name or "rows")  # type: ignore[misc]  # a class

    def dynamic_table(self, name: str, *, backend: str, **options: Any) -> str:
        """A table that SQL looks rows up in by its name, changed at any time: `dynamic_table_check('name', value)`. Options as in YAML."""
        model: Any = registry.Registry.installed().find("transform", "dynamic_table")
        return self.add(model(backend=backend, **options), (), name, (), "fail")

    def dead_letters(self, sink: Sink, name: str | None = None) -> DeadLetter:
        """A sink for bad rows, to be given as `on_error`."""
        return DeadLetter(dead_letter=self.add(sink, (), name, (), "fail"))

    def function(
        self,
        function: Callable[..., Any] | str,
        name: str | None = None,
        *,
        returns: str | pa.DataType | None = None,
        aggregate: bool | None = None,
        deterministic: bool | None = None,
    ) -> Callable[..., Expr]:
        """A function of yours for SQL: one pyarrow Array per argument → one Array of equal length. `name` is what SQL calls it, by
        default its own name; what comes back builds expressions: `double(col("x"))`.
        """
        options = {"function": function, "returns": returns, "aggregate": aggregate, "deterministic": deterministic}
        chosen, place = name or _name_of(function), caller()
        if chosen in self._functions:
            raise SpecError(_taken(chosen, self._functions[chosen].span, place))
        self._functions[chosen] = user_function(chosen, options, place)
        call: Callable[..., Expr] = getattr(func, chosen)
        return call

    def topology(self) -> Topology:
        """The plan so far."""
        functions = tuple(self._functions.values())
        return Topology(self.name, tuple(self._nodes.values()), self.settings, functions=functions, directory=self._directory)

    def execute(self, options: RunOptions | None = None) -> Report:
        """Run every stream that ends in a sink. Flows call this. Nodes that lead to none stay out: their mistakes do no harm."""
        topology = self.topology()
        used = used_nodes(topology) if topology.ends else topology.by_name
        nodes = tuple(node for node in topology.nodes if node.name in used)
        report: Report = registry.engine()(self._spark).run(replace(topology, nodes=nodes), options or RunOptions())
        return report

    def run_part(self, names: Iterable[str], settings: Settings) -> Report:
        """Run some of the nodes, as `collect` does. Spark is kept for the next time."""
        chosen = set(names)
        nodes = tuple(node for node in self._nodes.values() if node.name in chosen)
        part = replace(self.topology(), nodes=nodes, settings=settings)
        report: Report = registry.engine()(self._spark).run(part, RunOptions(keeps_spark=True))
        return report

    def add(
        self, component: Component, inputs: tuple[str, ...], name: str | None, primary_key: str | Iterable[str], on_error: OnError
    ) -> str:
        """Register a node and return its name."""
        chosen, place = name or self._free_name(component.type), caller()
        options = _common(primary_key, on_error, chosen)
        if chosen in self._nodes:
            raise SpecError(_taken(chosen, self._nodes[chosen].span, place))
        self._nodes[chosen] = Node(chosen, component, inputs_for(component, inputs), options, place)
        return chosen

    def declare(self, name: str, event_time: EventTime) -> None:
        """Give a node its event time."""
        node = self._nodes[name]
        self._nodes[name] = replace(node, options=node.options.model_copy(update={"event_time": event_time}))

    def forget(self, name: str) -> None:
        """Take a node out again."""
        del self._nodes[name]

    def _free_name(self, base: str) -> str:
        """`filter`, then `filter_2`: the same program gives the same names every time."""
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


def _name_of(function: Callable[..., Any] | str) -> str:
    return function.rpartition(":")[2] if isinstance(function, str) else str(getattr(function, "__name__", type(function).__name__))


def _taken(name: str, first: Span | None, second: Span | None) -> Diagnostic:
    where = f"the first one is in {first.file}:{first.line}" if first else ""
    return Diagnostic(
        "MS020",
        f"the name `{name}` is taken",
        second,
        detail=where,
        help=_TAKEN,
    )
