"""The secrets that a plan refers to, and those that cannot be read: they are reported before anything starts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from millstream.errors import Diagnostic, Span
from millstream.plan.nodes import Node
from millstream.plan.topology import Topology
from millstream.secrets import SCHEME, Secret


def secrets_of(topology: Topology) -> list[Secret]:
    """Every secret that a plan refers to."""
    values: list[Any] = [topology.settings]
    values += [node.component for node in topology.nodes]
    values += [value for _, value, _ in _plugins(topology)]
    values += [connection.options for connection in topology.connections]
    return [secret for value in values for secret in secrets_in(value)]


def _plugins(topology: Topology) -> Iterator[tuple[str, Any, Span | None]]:
    """Functions and side outputs with options."""
    for used in topology.functions:
        if used.plugin is not None:
            yield f"function `{used.name}`", used.plugin, used.span
    for watcher in topology.side_outputs:
        yield f"side output `{watcher.name}`", watcher.component, watcher.span


def unreadable(topology: Topology) -> Iterator[Diagnostic]:
    """The secrets of nodes and settings that cannot be read, each reported once."""
    told: set[str] = set()
    for node in topology.nodes:
        yield from _unreadable(f"{node.kind} `{node.name}`", node.component, node.span, told)
    for what, value, span in _plugins(topology):
        yield from _unreadable(what, value, span, told)
    yield from _unreadable("settings", topology.settings, None, told)


def unreadable_of(node: Node) -> Iterator[Diagnostic]:
    """The secrets of one node that cannot be read."""
    yield from _unreadable(f"{node.kind} `{node.name}`", node.component, node.span, set())


def _unreadable(what: str, value: Any, span: Span | None, told: set[str]) -> Iterator[Diagnostic]:
    for secret in secrets_in(value):
        if secret.reference not in told and (reason := _reason(secret)):
            told.add(secret.reference)
            yield Diagnostic("MS013", f"`{secret}` of {what} cannot be read: {reason}", span)


def _reason(secret: Secret) -> str:
    try:
        secret.reveal()
    except ValueError as error:
        return str(error)
    return ""


def secrets_in(value: Any) -> list[Secret]:
    """Every secret in options."""
    if isinstance(value, Secret):
        return [value]
    if isinstance(value, str) and value.startswith(SCHEME):
        return [Secret(value)]
    if isinstance(value, BaseModel):
        return [secret for inner in {**value.__dict__, **(value.model_extra or {})}.values() for secret in secrets_in(inner)]
    if isinstance(value, dict):
        return [secret for inner in value.values() for secret in secrets_in(inner)]
    if isinstance(value, list | tuple):
        return [secret for inner in value for secret in secrets_in(inner)]
    return []
