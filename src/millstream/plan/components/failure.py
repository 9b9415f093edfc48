"""A failure of a run that a component recognises as a failure of its own system."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Failure:
    """The text for the user. The message contains the node as `{node}`."""

    code: str
    message: str
    option: str = ""
    """The option that the message points to; empty: the node itself."""
    detail: str = ""
    help: str = ""
    temporary: bool = False
    """Whether a retry may succeed."""
