"""A YAML block as a pipeline: whole ones as printed, parts together with what the page has said before.

A part that names inputs, or ends without a sink, gets files and a `blackhole` in their place. Everything else has to be right.
"""

from __future__ import annotations

import re
from typing import Any

import yaml
from tests.docs.blocks import Block

from millstream.spec.loader import loads
from millstream.spec.tree import TreeReader, plain

_NAME = re.compile(r"`([^`]+)`")
_CONNECTED = {
    "kafka": {"type": "kafka", "topic": "t", "format": "json", "schema": {"id": "int64"}},
    "postgres": {"type": "postgres", "table": "t"},
}
_INPUT = {"type": "file", "path": "rows", "format": "parquet", "event_time": {"column": "at", "watermark": "10s"}}


class Page:
    """What a page has said so far."""

    def __init__(self) -> None:
        self.said: dict[str, Any] = {}

    def errors(self, block: Block) -> list[str]:
        """What is wrong with a block; a mistake that it is meant to have is left out."""
        if block.key == "mistake":
            found = _errors(block.text, block.place)
            return [] if len(found) == 1 and block.value in found[0] else [f"{block.place} has no {block.value}", *found]
        if "/" in block.file:  # another block includes it
            return []
        if block.whole:
            self.said = _parsed(block.text)
            return _errors(block.text, block.place)
        part = _parsed(_in_its_section(block))
        for section, content in part.items():
            if isinstance(content, dict):
                self.said[section] = self.said.get(section, {}) | content
            else:
                self.said[section] = content
        return _errors(yaml.safe_dump(_completed(self.said, block.place), sort_keys=False), block.place)


def _parsed(text: str) -> dict[str, Any]:
    tree = TreeReader("block", text).read()
    assert tree is not None
    parsed: dict[str, Any] = plain(tree)
    return parsed


def _errors(text: str, place: str) -> list[str]:
    return [finding.render() for finding in loads(text, file=place).errors]


def _in_its_section(block: Block) -> str:
    """A page of a component shows nodes without the section that they stand in."""
    sections = re.search(r"^(sources|transforms|sinks|connections|settings|functions|tests|name):", block.text, re.M)
    if sections:
        return block.text
    kind = re.search(r"components/(\w+)/", block.page)
    indented = "".join(f"  {line}" for line in block.text.splitlines(keepends=True))
    return f"{kind[1] if kind else 'transforms'}:\n{indented}"


def _completed(said: dict[str, Any], place: str) -> dict[str, Any]:
    """A pipeline that could run: inputs that are named elsewhere, and an end."""
    whole = {section: dict(content) if isinstance(content, dict) else content for section, content in said.items()}
    whole.setdefault("sources", {})
    nodes = {**whole["sources"], **whole.get("transforms", {}), **whole.get("sinks", {})}
    used = {options.get("connection") or options.get("type") for options in nodes.values()}
    for name in set(whole.get("connections", {})) & set(_CONNECTED) - used:
        whole["sources"][f"of_{name}"] = _CONNECTED[name]
    for options in [options for options in nodes.values() if options.get("type") == "branch"]:
        whole["sources"].setdefault("routed", _INPUT)
        whole["transforms"].setdefault(options["from"], {"type": "route", "from": "routed", "routes": {options["branch"]: "true"}})
        nodes = {**nodes, **whole["transforms"]}
    sinks = whole.setdefault("sinks", {})
    ends = [name for name in (*whole["sources"], *whole.get("transforms", {})) if nodes.get(name, {}).get("type") != "dynamic_table"]
    for name in ends:
        route = f"{name}.default" if nodes.get(name, {}).get("type") == "route" else name
        sinks[f"end_of_{name.replace('.', '_')}"] = {"type": "blackhole", "from": route}
    if not whole["sources"] and not ends:
        whole["sources"]["rows"] = _INPUT
        sinks["end"] = {"type": "blackhole", "from": "rows"}
    for finding in loads(yaml.safe_dump(whole, sort_keys=False), file=place).errors:
        names = _NAME.findall(finding.message)
        if finding.code == "MS012":
            whole["sources"].setdefault(names[0], _INPUT)
        elif finding.code == "MS031":
            sinks.setdefault(names[1], {"type": "blackhole"})
    return whole
