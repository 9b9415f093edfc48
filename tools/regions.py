"""Parts of hand-written pages that are written from the classes and from `pyproject.toml`, between two comments:

<!-- generated: NAME -->
<!-- end generated -->
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import yaml

from millstream.inspector.exported_metrics import METRICS
from millstream.plan.components import sink, source, transform
from millstream.registry import Kind, Registry

ROOT = Path(__file__).parent.parent
_REGION = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end generated -->)", re.DOTALL)
_EXTRA = re.compile(r"^(\w+) = \[(.*?)\]\s*# (.+)$", re.MULTILINE)


def region_pages() -> dict[str, str]:
    """Path under docs/ of each page with such a part → its text"""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    texts = {path: path.read_text(encoding="utf-8") for path in pages}
    return {_path(path): _REGION.sub(_written, text) for path, text in texts.items() if _REGION.search(text)}


def _path(path: Path) -> str:
    return "../README.md" if path.parent == ROOT else path.name


def _written(match: re.Match[str]) -> str:
    return f"{match[1]}\n{REGIONS[match[2]]()}\n\n{match[3]}"


def _extras() -> str:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    section = text.split("[project.optional-dependencies]", 1)[1].split("\n[", 1)[0]
    rows = [f"| `{name}` | {_packages(packages)} | {what} |" for name, packages, what in _EXTRA.findall(section)]
    return "\n".join(["| extra | packages | what for |", "|---|---|---|", *rows])


def _packages(text: str) -> str:
    return ", ".join(f"`{name}`" for name in re.findall(r'"([\w.-]+)', text)) or "none"


def _components() -> str:
    rows = [f"| {kind}s | {', '.join(_link(kind, name) for name in Registry.installed().types(kind))} |" for kind in _kinds()]
    return "\n".join(["| | |", "|---|---|", *rows])


def _kinds() -> tuple[Kind, ...]:
    return ("source", "transform", "sink")


def _link(kind: Kind, name: str) -> str:
    return f"[{name}](docs/components/{kind}s/{name}.md)"


def _sinks() -> str:
    classes = [(name, model) for kind, name, model in Registry.installed().classes() if kind == "sink"]
    rows = [f"| `{name}` | {model.commit_method} | {model.best.replace('_', ' ')} |" for name, model in sorted(classes)]
    return "\n".join(["| sink | how an epoch is committed | guarantee at best |", "|---|---|---|", *rows])


def _capabilities() -> str:
    """Every protocol of `plan/components`, by the kind of component."""
    rows = []
    for kind, module in (("source", source), ("transform", transform), ("sink", sink)):
        found = [value for value in vars(module).values() if getattr(value, "_is_protocol", False) and value.__module__ == module.__name__]
        rows += [f"| {kind} | `{value.__name__}` | {' '.join((value.__doc__ or '').split())} |" for value in found]
    return "\n".join(["| of a | capability | |", "|---|---|---|", *rows])


def _metrics() -> str:
    """The metrics of a run, with the names that other tools give to the same."""
    rows = [
        f"| `{metric.prometheus}{'_total' if metric.kind == 'counter' else ''}` | {metric.kind} | {_names(', '.join(metric.labels))} "
        f"| {metric.description} | {_names(metric.streamling)} | {_names(metric.volley)} |"
        for metric in METRICS
    ]
    return "\n".join(["| metric | kind | labels | | Streamling | Volley |", "|---|---|---|---|---|---|", *rows])


def _names(text: str) -> str:
    return ", ".join(f"`{name}`" for name in text.split(", ") if name)


def _alerts() -> str:
    """The alert rules."""
    (group,) = yaml.safe_load((ROOT / "ops" / "prometheus" / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
    rows = [
        f"| `{rule['alert']}` | {rule['labels']['severity']} | `{' '.join(rule['expr'].split())}`{_for(rule)} |" for rule in group["rules"]
    ]
    return "\n".join(["| alert | severity | fires when |", "|---|---|---|", *rows])


def _for(rule: Mapping[str, str]) -> str:
    return f" for {rule['for']}" if "for" in rule else ""


REGIONS: dict[str, Callable[[], str]] = {
    "alerts": _alerts,
    "capabilities": _capabilities,
    "components": _components,
    "extras": _extras,
    "metrics": _metrics,
    "sinks": _sinks,
}
