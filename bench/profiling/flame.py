"""Flame graphs: the folded text that the usual tools read, and an SVG of our own without scripts: the browser shows a frame's whole name
and its time when the pointer rests on it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape

Stack = tuple[str, ...]
_WIDTH, _ROW, _LETTER = 1400, 17, 6.6
_SMALLEST = 0.0005
"""The smallest share of the whole that gets a box."""


def folded(stacks: Mapping[Stack, float]) -> str:
    """`outer;inner;innermost 1234` per line, in microseconds."""
    lines = [f"{';'.join(map(_clean, stack))} {round(seconds * 1e6)}" for stack, seconds in sorted(stacks.items()) if seconds > 0]
    return "".join(f"{line}\n" for line in lines)


def _clean(frame: str) -> str:
    """A name without the characters that mean something in the text."""
    return frame.replace(";", ",").replace(" ", "_").replace("\n", "_") or "_"


@dataclass
class _Box:
    name: str
    seconds: float = 0.0
    inside: dict[str, _Box] = field(default_factory=dict)

    @property
    def depth(self) -> int:
        return 1 + max((box.depth for box in self.inside.values()), default=0)


def svg(stacks: Mapping[Stack, float], title: str) -> str:
    """The graph: the callers on top, the width is time."""
    whole = _tree(stacks)
    height = (whole.depth + 2) * _ROW
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="monospace" font-size="11">\n'
        f'<rect width="100%" height="100%" fill="#fff"/>\n<text x="4" y="13">{escape(title)}</text>\n'
    )
    return head + "".join(_draw(whole, 0.0, 1, whole.seconds or 1.0)) + "</svg>\n"


def _tree(stacks: Mapping[Stack, float]) -> _Box:
    whole = _Box("all")
    for stack, seconds in stacks.items():
        box = whole
        box.seconds += seconds
        for name in stack:
            box = box.inside.setdefault(name, _Box(name))
            box.seconds += seconds
    return whole


def _draw(box: _Box, left: float, row: int, whole: float) -> Iterator[str]:
    share = box.seconds / whole
    if share < _SMALLEST:
        return
    width, letters = share * _WIDTH, int(share * _WIDTH / _LETTER) - 1
    label = box.name if len(box.name) <= letters else f"{box.name[: letters - 1]}…" if letters > 3 else ""
    text = f'<text x="{left + 3:.1f}" y="{row * _ROW + 12}">{escape(label)}</text>' if label else ""
    tip = f"<title>{escape(box.name)}: {box.seconds * 1000:,.0f} ms, {share:.1%}</title>"
    place = f'x="{left:.1f}" y="{row * _ROW}" width="{max(width - 0.4, 0.2):.1f}" height="{_ROW - 1}"'
    yield f'<g>{tip}<rect {place} rx="1" fill="{_colour(box.name)}"/>{text}</g>\n'
    for inner in sorted(box.inside.values(), key=lambda each: each.name):
        yield from _draw(inner, left, row + 1, whole)
        left += inner.seconds / whole * _WIDTH


def _colour(name: str) -> str:
    """Python is warm, Java is blue; one name has one colour."""
    mark = hashlib.sha256(name.encode()).digest()[0]
    hue = 15 + mark % 40 if ".py:" in name or name in {"all", "py4j"} else 195 + mark % 40
    return f"hsl({hue},75%,{68 + mark % 12}%)"
