"""The JavaScript that is ours, which is shipped with a script."""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def prelude() -> str:
    """What runs around the script on every engine."""
    return _read("prelude.js")


@cache
def deno_main() -> str:
    return _read("deno.js")


def _read(name: str) -> str:
    return (resources.files("millstream.scripts") / name).read_text(encoding="utf-8")
