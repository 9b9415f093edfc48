"""Runs the tests of a pipeline: expected rows, actual rows, and a readable difference."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from millstream.plan.pipeline_tests import Case
from millstream.plan.topology import Topology

Row = Mapping[str, Any]
Runner = Callable[..., dict[str, list[dict[str, Any]]]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one test."""

    case: Case
    differences: dict[str, tuple[str, ...]]
    """node → lines of the difference"""

    @property
    def passed(self) -> bool:
        return not self.differences


def run_case(topology: Topology, case: Case, runner: Runner) -> Outcome:
    """Pass the rows to the sources, and compare the rows of every node that the test names."""
    expect = case.options.expect
    observed = [name for name in expect if topology.node(name).kind != "sink"]
    came = runner(topology, dict(case.options.given), observe=observed)
    found = {name: difference(rows, came[name], case.options.ordered) for name, rows in expect.items()}
    return Outcome(case, {name: lines for name, lines in found.items() if lines})


def difference(expected: Sequence[Row], came: Sequence[Row], ordered: bool = False) -> tuple[str, ...]:
    """Lines with `-` for missing rows and `+` for unexpected rows. Only the columns that the test names are compared."""
    columns = list(dict.fromkeys(column for row in expected for column in row)) or None
    wanted, got = [_text(row, columns) for row in expected], [_text(row, columns) for row in came]
    if wanted == got or (not ordered and Counter(wanted) == Counter(got)):
        return ()
    missing, extra = Counter(wanted) - Counter(got), Counter(got) - Counter(wanted)
    same = [f"  {text}" for text in wanted if text not in missing]
    lines = [*same, *(f"- {text}" for text in missing.elements()), *(f"+ {text}" for text in extra.elements())]
    return tuple(lines) if missing or extra else ("the rows are correct, but their order is not:", *(f"+ {text}" for text in got))


def _text(row: Row, columns: Sequence[str] | None) -> str:
    return json.dumps({name: _plain(row.get(name)) for name in columns or row}, ensure_ascii=False, default=str)


def _plain(value: Any) -> Any:
    """Values as YAML writes them: a decimal equals the number, a timestamp its text."""
    if isinstance(value, Decimal | float) and math.isfinite(value):
        return int(value) if value == int(value) else float(value)
    if isinstance(value, datetime):
        return _plain_time(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, str):
        return _time_text(value)
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value.hex() if isinstance(value, bytes) else value


def _plain_time(value: datetime) -> str:
    return value.replace(tzinfo=None).isoformat()


def _time_text(text: str) -> str:
    if len(text) < 19 or text[4:5] != "-":
        return text
    try:
        return _plain_time(datetime.fromisoformat(text))
    except ValueError:
        return text
