"""When the rows that the watermark has passed leave the stores of an operator.

Stores are written again without them: when they have twice as many rows as after the last time, or when the watermark has passed all rows
of the last time. So a store is not much larger than what can still change, and few rows are written twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from millstream.engine.incremental.leaving.rules import LeavingRules
from millstream.engine.incremental.tracing import operator_of


@dataclass
class _Last:
    """The last time that rows left."""

    watermark_us: int = 0
    rows: int = 0
    epochs: int = 0
    """The epochs since then."""


@dataclass
class LeavingSchedule:
    """The stores whose rows leave, by operator."""

    rules: LeavingRules
    _last: dict[str, _Last] = field(default_factory=dict)

    def due(self, kept: Mapping[str, int], watermark_us: int, epochs: int) -> list[str]:
        """The stores that are due after an epoch, not more often than once in some epochs. `kept` is the number of their rows."""
        found: list[str] = []
        for operator in dict.fromkeys(map(operator_of, self.rules)):
            stores = [name for name in self.rules if operator_of(name) == operator]
            last, rows = self._last.setdefault(operator, _Last()), sum(kept[name] for name in stores)
            last.epochs += 1
            passed = watermark_us - last.watermark_us
            worth = rows >= 2 * last.rows or passed >= max(self.rules[name].lag_us for name in stores)
            if rows and worth and passed > 0 and last.epochs >= epochs:
                found += stores
        return found

    def record(self, left: Mapping[str, int], watermark_us: int) -> None:
        """Stores have been written again, with so many rows."""
        for operator in dict.fromkeys(map(operator_of, left)):
            self._last[operator] = _Last(watermark_us, sum(rows for name, rows in left.items() if operator_of(name) == operator))
