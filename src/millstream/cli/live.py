"""The live view of a run: a table on a terminal, updated several times per second. Without a terminal, `EventLog` takes its place."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any

from millstream.observe.facts import NodeFacts
from millstream.observe.metrics import Metric, metrics_of
from millstream.observe.rates import WINDOW, Rates
from millstream.units import duration_of

if TYPE_CHECKING:
    from millstream.errors import Diagnostic
    from millstream.observe.facts import QueryFacts, Snapshot
    from millstream.observe.report import Report
    from millstream.plan.topology import Topology


class Screen:
    """The updated part of the terminal: one table for each pipeline, one below the other."""

    def __init__(self) -> None:
        self._display: Any = None
        self._parts: dict[str, Any] = {}

    def put(self, name: str, part: Any) -> None:
        """Show the table of a pipeline. The first call opens the view."""
        from rich.console import Console, Group
        from rich.live import Live as Display

        self._parts[name] = part
        if self._display is None:
            self._display = Display(console=Console(stderr=True), refresh_per_second=8, transient=True)
            self._display.start()
        self._display.update(Group(*self._parts.values()))

    def drop(self, name: str) -> None:
        """Remove the table of a pipeline."""
        from rich.console import Group

        self._parts.pop(name, None)
        if self._display is not None:
            self._display.update(Group(*self._parts.values()), refresh=True)

    def close(self) -> None:
        """Remove the view from the terminal."""
        display, self._display = self._display, None
        if display is not None:
            display.stop()


class Live:
    """Shows the snapshots of one pipeline. Several can share a screen; then each note starts with the name of its pipeline."""

    def __init__(self, topology: Topology, screen: Screen | None = None) -> None:
        self._topology = topology
        self._screen, self._prefix = screen or Screen(), f"{topology.name}: " if screen else ""
        self._rates = Rates()
        self._noted = 0
        self._shown = False
        self.running = False
        """Whether Spark has started, so that a stop waits for an epoch."""
        self.ended = False

    def __enter__(self) -> Live:
        from rich.spinner import Spinner

        self._shown = True
        self._screen.put(self._topology.name, Spinner("dots", f" {self._topology.name}: starting Spark"))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Remove the view from the terminal."""
        self._shown = False
        self._screen.close()

    def add_note(self, text: str) -> None:
        """Print a note about the whole run above the table."""
        print(f"{self._prefix}{text}", file=sys.stderr)

    def fail(self, found: Sequence[Diagnostic]) -> None:
        """Remove the table. The caller shows the errors."""
        self._remove()

    def end(self, report: Report) -> None:
        """Remove the table. The caller prints the summary."""
        self._remove()

    def _remove(self) -> None:
        """Remove the table of this pipeline; other pipelines on the screen stay."""
        self._shown, self.ended = False, True
        self._screen.drop(self._topology.name)

    def update(self, snapshot: Snapshot) -> None:
        self.running = snapshot.state == "running"
        for note in snapshot.notes[self._noted :]:
            self.add_note(note)
        self._noted = len(snapshot.notes)
        if self._shown:
            self._rates.add(
                {name: max(facts.rows_in or 0, facts.rows_out or 0) for name, facts in snapshot.nodes.items()}, time.monotonic()
            )
            self._screen.put(self._topology.name, self._table(snapshot))

    def _table(self, snapshot: Snapshot) -> Any:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        epochs = [f"{name}: {_progress(query)}" for name, query in snapshot.queries.items()]
        table = Table(
            title=f"{snapshot.pipeline} · {snapshot.state} · {snapshot.seconds:.0f} s",
            title_justify="left",
            box=None,
        )
        shown = [metric for metric in metrics_of(NodeFacts) if _has_column(metric, snapshot)]
        for heading in ("node", "", *(metric.label for metric in shown), "rows/s"):
            table.add_column(heading, justify="left" if heading in {"node", ""} else "right", style="dim" if heading == "" else None)
        for node in self._topology.nodes:
            facts = snapshot.nodes.get(node.name)
            cells = [metric.text(facts) if facts else "" for metric in shown]
            table.add_row(node.name, node.component.type, *cells, _rate(self._rates.of(node.name, time.monotonic())))
        return Group(table, Text("\n".join(epochs), style="italic"), Text(_legend(snapshot), style="dim"))


def _has_column(metric: Metric, snapshot: Snapshot) -> bool:
    return any(metric.is_shown(facts, metric.column) for facts in snapshot.nodes.values()) or metric.column == "always"


def _progress(query: QueryFacts) -> str:
    epoch = "–" if query.last_epoch is None else query.last_epoch
    return f"epoch {epoch} ({query.last_seconds:.2f} s), {_behind(query)} behind{_watermark(query)}"


def _behind(query: QueryFacts) -> str:
    return f"{query.lag_seconds:.1f} s" if query.lag_seconds < 10 else duration_of(query.lag_seconds)


def _legend(snapshot: Snapshot) -> str:
    """The explanation of the words in the view."""
    waiting = (
        "waiting: rows that the source has and no epoch has read; "
        if any(facts.waiting is not None for facts in snapshot.nodes.values())
        else ""
    )
    return f"rows/s: over {WINDOW:.0f} s; {waiting}behind: how long the rows of the running epoch wait to be committed"


def _rate(rows: float) -> str:
    """A rate as text, with a decimal for slow streams."""
    return f"{rows:,.0f}" if rows >= 10 or rows == 0 else f"{rows:.1f}"


def _watermark(query: QueryFacts) -> str:
    if query.watermark is None:
        return ""
    at = datetime.fromtimestamp(query.watermark.at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f", watermark {at} ({ago(query.watermark.lag_seconds)}), held by {query.watermark.slowest}"


def ago(seconds: float) -> str:
    """The distance from now to a time, such as `5 min ago`."""
    return f"{duration_of(seconds)} ago" if seconds >= 0 else f"{duration_of(-seconds)} ahead"
