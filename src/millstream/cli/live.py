"""The view of a running pipeline: one table on a terminal, redrawn several times a second. Without a terminal there is `EventLog`."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millstream.errors import Diagnostic
    from millstream.observe.facts import NodeFacts, QueryFacts, Snapshot
    from millstream.observe.report import Report
    from millstream.plan.topology import Topology


_UNITS = ((86400, "days"), (3600, "h"), (60, "min"), (1, "s"))


class Live:
    """Shows snapshots."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._display: Any = None
        self._before: tuple[float, dict[str, int]] = (time.monotonic(), {})
        self._rates: dict[str, float] = {}
        self._noted = 0
        self.running = False
        """Whether there are epochs by now that a stop could wait for."""

    def __enter__(self) -> Live:
        from rich.console import Console
        from rich.live import Live as Display
        from rich.spinner import Spinner

        waiting = Spinner("dots", f" {self._topology.name}: starting Spark")
        self._display = Display(waiting, console=Console(stderr=True), refresh_per_second=8, transient=True)
        self._display.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Take the view off the terminal."""
        display, self._display = self._display, None
        if display is not None:
            display.stop()

    def say(self, text: str) -> None:
        print(text, file=sys.stderr)

    def failed(self, found: Sequence[Diagnostic]) -> None:
        """Told by whoever shows the error."""

    def ended(self, report: Report) -> None:
        """Told by the summary."""

    def update(self, snapshot: Snapshot) -> None:
        self.running = snapshot.state == "running"
        for note in snapshot.notes[self._noted :]:
            print(note, file=sys.stderr)
        self._noted = len(snapshot.notes)
        if self._display is not None:
            self._measure(snapshot.nodes)
            self._display.update(self._table(snapshot))

    def _measure(self, nodes: Mapping[str, NodeFacts]) -> None:
        now, (then, before) = time.monotonic(), self._before
        if now - then < 1:
            return
        counts = {name: max(facts.rows_in or 0, facts.rows_out or 0) for name, facts in nodes.items()}
        self._rates = {name: (count - before.get(name, 0)) / (now - then) for name, count in counts.items()}
        self._before = (now, counts)

    def _table(self, snapshot: Snapshot) -> Any:
        from rich.table import Table

        epochs = ", ".join(f"{name}: {_progress(query)}" for name, query in snapshot.queries.items())
        table = Table(
            title=f"{snapshot.pipeline} · {snapshot.state} · {snapshot.seconds:.0f} s",
            title_justify="left",
            caption=epochs,
            caption_justify="left",
            box=None,
        )
        for heading, side in (
            ("node", "left"),
            ("", "left"),
            ("rows in", "right"),
            ("rows out", "right"),
            ("rows/s", "right"),
            ("bad", "right"),
            *_columns(snapshot),
        ):
            table.add_column(heading, justify=side, style="dim" if heading == "" else None)  # type: ignore[arg-type]  # both are names that Rich knows
        for node in self._topology.nodes:
            facts = snapshot.nodes.get(node.name)
            table.add_row(
                node.name,
                node.component.type,
                *_cells(facts),
                f"{self._rates.get(node.name, 0):,.0f}",
                f"{facts.rejected:,}" if facts else "",
                *(_more(facts, heading) for heading, _ in _columns(snapshot)),
            )
        return table


def _columns(snapshot: Snapshot) -> list[tuple[str, str]]:
    """More columns for pipelines that remember, and for sources that know what is left."""
    remembers = any(facts.state for facts in snapshot.nodes.values())
    waits = any(facts.waiting is not None for facts in snapshot.nodes.values())
    return [*([("late", "right"), ("state", "right")] if remembers else []), *([("waiting", "right")] if waits else [])]


def _more(facts: NodeFacts | None, heading: str) -> str:
    if facts is None:
        return ""
    return {"late": f"{facts.late:,}", "state": _state(facts), "waiting": _number(facts.waiting)}[heading]


def _state(facts: NodeFacts | None) -> str:
    return f"{facts.state.rows:,} rows, {facts.state.memory_bytes >> 20:,} MB" if facts and facts.state else ""


def _cells(facts: NodeFacts | None) -> tuple[str, str]:
    return (_number(facts.rows_in), _number(facts.rows_out)) if facts else ("", "")


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _progress(query: QueryFacts) -> str:
    epoch = "–" if query.last_epoch is None else query.last_epoch
    return f"epoch {epoch} ({query.last_seconds:.2f} s), {query.lag_seconds:.1f} s behind{_watermark(query)}"


def _watermark(query: QueryFacts) -> str:
    if query.watermark is None:
        return ""
    at = datetime.fromtimestamp(query.watermark.at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f", watermark {at} ({ago(query.watermark.lag_seconds)}), held by {query.watermark.slowest}"


def ago(seconds: float) -> str:
    """A distance in time, in the unit that people would use."""
    size, unit = next((size, unit) for size, unit in _UNITS if abs(seconds) >= 2 * size or size == 1)
    return f"{seconds / size:,.0f} {unit} ago"
