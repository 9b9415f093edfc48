"""The queries of a plan, for rules that ask about them."""

from __future__ import annotations

from millstream.plan.cutting import QueryPlan, cut
from millstream.plan.schemas import Schemas
from millstream.plan.topology import Topology
from millstream.rules.names import names_are_unique
from millstream.rules.wiring import dead_letters_exist, inputs_are_as_many_as_needed, inputs_exist, no_cycle

_WIRING = (names_are_unique, inputs_exist, inputs_are_as_many_as_needed, no_cycle, dead_letters_exist)


def queries_of(topology: Topology, schemas: Schemas) -> tuple[QueryPlan, ...]:
    """None while nodes are wired wrongly, which other rules report: a cycle has no root."""
    wrong = any(True for rule in _WIRING for _ in rule(topology, schemas))
    return () if wrong else cut(topology)
