"""The checks on a plan, in the order in which their findings are shown. Each is a function from the plan to diagnostics.

A rule does not report what another rule has already reported: schemas behind a missing input are unknown, and unknown schemas cause no
findings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from millstream.errors import Diagnostic
from millstream.plan.schemas import Schemas, propagate
from millstream.plan.topology import Topology
from millstream.rules.functions import called_functions_exist, functions_are_called_where_they_can_run, functions_are_found
from millstream.rules.incremental import changelogs_have_keys, results_can_be_kept
from millstream.rules.names import names_are_allowed, names_are_unique
from millstream.rules.options import components_agree, logins_are_encrypted, primary_keys_are_in_the_schema
from millstream.rules.real_time import real_time_is_possible
from millstream.rules.routes import branches_are_read, routes_are_read_by_branch, varying_routes_have_one_query
from millstream.rules.time import (
    event_times_can_be_read,
    final_results_have_an_end,
    finished_nodes_come_last,
    only_incremental_nodes_have_a_ttl,
    only_stateful_nodes_have_late_rows,
    state_is_not_over_changelogs,
    stateful_nodes_have_event_time,
    totals_are_over_rows,
)
from millstream.rules.tracing import the_column_of_traces_is_free, traces_begin_at_sources
from millstream.rules.wiring import (
    both_ends_exist,
    dead_letters_exist,
    every_node_is_read,
    groups_share_a_query,
    inputs_are_as_many_as_needed,
    inputs_exist,
    no_cycle,
    side_outputs_see_sources,
)

Rule = Callable[[Topology, Schemas], Iterator[Diagnostic]]


RULES: tuple[Rule, ...] = (
    names_are_allowed,
    names_are_unique,
    inputs_exist,
    side_outputs_see_sources,
    routes_are_read_by_branch,
    inputs_are_as_many_as_needed,
    no_cycle,
    both_ends_exist,
    dead_letters_exist,
    every_node_is_read,
    branches_are_read,
    primary_keys_are_in_the_schema,
    event_times_can_be_read,
    traces_begin_at_sources,
    the_column_of_traces_is_free,
    components_agree,
    groups_share_a_query,
    functions_are_found,
    called_functions_exist,
    functions_are_called_where_they_can_run,
    stateful_nodes_have_event_time,
    state_is_not_over_changelogs,
    final_results_have_an_end,
    finished_nodes_come_last,
    totals_are_over_rows,
    only_incremental_nodes_have_a_ttl,
    changelogs_have_keys,
    results_can_be_kept,
    only_stateful_nodes_have_late_rows,
    real_time_is_possible,
    varying_routes_have_one_query,
    logins_are_encrypted,
)


def check(topology: Topology, discovered: Schemas | None = None) -> tuple[Diagnostic, ...]:
    """All findings of all rules."""
    schemas = propagate(topology, discovered)
    return tuple(finding for rule in RULES for finding in rule(topology, schemas))
