"""The Python reference: pages written from signatures and docstrings of the public names."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from pydantic import BaseModel

import millstream
import millstream.testing
from millstream.spec.docstrings import field_docs
from millstream.worker.state_cells import ListCell, MapCell, ValueCell

_PAGES = {
    "streams": (
        "Environments and streams",
        "A pipeline in Python: an environment, streams, and flows that end in sinks. The guide is [Python](../python.md).",
        "StreamEnvironment DataStream KeyedStream WindowedStream Split Flow",
    ),
    "expressions": (
        "Expressions, aggregates and windows",
        "Wherever an operator takes an expression, its text in Spark SQL will do as well.",
        """col lit expr func Expr count sum_ avg min_ max_ first last count_distinct collect collect_set median percentile stddev variance
        top_k approx_count_distinct approx_percentile TumblingWindow SlidingWindow SessionWindow EventTime Sampling function""",
    ),
    "process": (
        "Process functions, states and timers",
        "Classes of yours that see the rows of each key. An example is in the guide [Python](../python.md#process-functions).",
        "ProcessFunction KeyState ValueState ListState MapState Timers Moment BucketFunction BucketResult",
    ),
    "plugins": (
        "Plugins",
        "Classes from which plugins derive, and what they are given. The guide is [Extend it](../extending.md).",
        """plugin ArrowSource ArrowTransform ArrowSink Udf Preprocessor SideOutput NodeContext Task WriteTask Epoch LedgerEntry PipelineText
        TemporaryFailure Secret""",
    ),
    "runs": (
        "Running and reading results",
        "Options and results of `execute()`, plans, files that sinks have committed, and errors.",
        "RunOptions Report Settings Topology load_pipeline committed_files read_committed MillstreamError Diagnostic",
    ),
}
"""page → title, introduction, public names in their order"""
_LONG = 100
_INTERNAL = {"add", "declare", "forget", "run_part", "then", "stored", "times"}
"""Methods that other parts of the package call, and programs do not."""
_CELLS = {"ValueState": ValueCell, "ListState": ListCell, "MapState": MapCell}


def reference_pages() -> dict[str, str]:
    """Path under docs/ → text"""
    found = {
        f"reference/{page}.md": _page(title, text, _members(millstream, names.split())) for page, (title, text, names) in _PAGES.items()
    }
    text = "`millstream.testing` runs pipelines on real Spark, with the ends replaced by memory. The guide is [Python](../python.md#tests)."
    return found | {"reference/testing.md": _page("The testing kit", text, _members(millstream.testing, millstream.testing.__all__))}


def named() -> list[str]:
    """Every public name that a page of the reference describes."""
    return [name for _, _, names in _PAGES.values() for name in names.split()]


def _members(module: ModuleType, names: list[str]) -> list[tuple[str, Any]]:
    return [(name, getattr(module, name)) for name in names]


def _page(title: str, text: str, members: list[tuple[str, Any]]) -> str:
    lines = [f"# {title}", "", text, ""]
    for name, member in members:
        lines += _class(name, member) if isinstance(member, type) else _function(name, member)
    return "\n".join(lines)


def _class(name: str, kind: type) -> list[str]:
    lines = [f"## {name}", "", *_doc(kind.__doc__), ""]
    if name in _CELLS:
        lines += ["In a process function `state[NAME]` has these methods:", "", *_operations(_CELLS[name]), ""]
    if (docs := _fields(kind)) and name != "Settings":
        lines += ["| attribute | |", "|---|---|", *(f"| `{field}` | {text} |" for field, text in docs.items()), ""]
    if name == "Settings":
        lines += ["Its fields: [Settings](../settings.md).", ""]
    for method, member in _methods(kind):
        lines += [f"### {name}.{method}", "", *_signature(method, member), *_doc(inspect.getdoc(member)), ""]
    return lines


def _function(name: str, member: Any) -> list[str]:
    if not inspect.isfunction(member):
        return [f"## {name}", "", *_doc(type(member).__doc__), ""]
    return [f"## {name}", "", *_signature(name, member), *_doc(member.__doc__), ""]


def _fields(kind: type) -> dict[str, str]:
    """Attributes with a text, and properties."""
    found = {name: text for name, text in field_docs(kind).items() if not name.startswith("_")}
    for name, member in vars(kind).items():
        if isinstance(member, property) and not name.startswith("_") and member.__doc__:
            found.setdefault(name, " ".join(member.__doc__.split()))
    return found


def _methods(kind: type) -> Iterator[tuple[str, Any]]:
    """Public methods that have a text, in the order of the source. Those of pydantic are left out."""
    inherited = set(dir(BaseModel)) if issubclass(kind, BaseModel) else set()
    for parent in [kind, *(parent for parent in kind.__mro__[1:] if parent.__module__.startswith("millstream"))]:
        for name, member in vars(parent).items():
            bare = getattr(member, "__func__", member)
            if not name.startswith("_") and name not in inherited | _INTERNAL and inspect.isfunction(bare) and bare.__doc__:
                yield name, bare
                inherited = inherited | {name}


def _operations(cell: type) -> list[str]:
    return [f"- `{_call(name, member)}`" for name, member in vars(cell).items() if not name.startswith("_") and name not in _INTERNAL]


def _signature(name: str, member: Callable[..., Any]) -> list[str]:
    return ["```text", _call(name, member), "```", ""]


def _call(name: str, member: Callable[..., Any]) -> str:
    """A call with its arguments, on several lines when one would be long."""
    signature = inspect.signature(member)
    parts: list[str] = []
    starred = False
    for each in signature.parameters.values():
        if each.kind is each.KEYWORD_ONLY and not starred:
            parts.append("*")
        starred = starred or each.kind in {each.KEYWORD_ONLY, each.VAR_POSITIONAL}
        if each.name not in {"self", "cls"}:
            parts.append(_parameter(each))
    result = "" if signature.return_annotation in {inspect.Signature.empty, "None"} else f" -> {signature.return_annotation}"
    text = f"{name}({', '.join(parts)}){result}"
    return text if len(text) <= _LONG else "\n".join([f"{name}(", *(f"    {part}," for part in parts), f"){result}"])


def _parameter(each: inspect.Parameter) -> str:
    stars = "*" if each.kind is each.VAR_POSITIONAL else "**" if each.kind is each.VAR_KEYWORD else ""
    kind = "" if each.annotation is each.empty else f": {each.annotation}"
    default = "" if each.default is each.empty else f" = {each.default!r}"
    return f"{stars}{each.name}{kind}{default}"


def _doc(text: str | None) -> list[str]:
    """A docstring; indented parts become blocks of code."""
    lines, code = [], False
    for line in inspect.cleandoc(text or "").splitlines():
        indented = bool(re.match(r" {4}\S", line)) or (code and line.startswith("    "))
        if indented != code and line.strip():
            lines.append("```" if code else "```text")
            code = indented
        lines.append(line[4:] if code else line)
    return [*lines, "```"] if code else lines
