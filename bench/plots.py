"""Lines over an axis, as SVG: nothing that a page of figures needs is worth a plotting library."""

from __future__ import annotations

from dataclasses import dataclass

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 640, 320, 70, 50
_COLOURS = ("#2c6fbb", "#c0392b", "#2e8b57")


@dataclass(frozen=True, slots=True)
class Series:
    """One line."""

    name: str
    points: list[tuple[float, float]]


def draw(title: str, axis: str, lines: list[Series]) -> str:
    right = max(x for line in lines for x, _ in line.points) or 1
    top = max(y for line in lines for _, y in line.points) * 1.1 or 1

    def place(x: float, y: float) -> tuple[float, float]:
        return _LEFT + x / right * (_WIDTH - _LEFT - 20), _HEIGHT - _BOTTOM - y / top * (_HEIGHT - _BOTTOM - 40)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="Helvetica, sans-serif" font-size="12">'
    ]
    parts += [f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>', f'<text x="{_LEFT}" y="22" font-size="14">{title}</text>']
    for step in range(5):
        x, y = place(right * step / 4, top * step / 4)
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - 20}" y1="{y:.0f}" y2="{y:.0f}" stroke="#dddddd"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.0f}" text-anchor="end">{top * step / 4:,.3g}</text>')
        parts.append(f'<text x="{x:.0f}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">{right * step / 4:.3g}</text>')
    parts.append(f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 10}" text-anchor="middle">{axis}</text>')
    for index, line in enumerate(lines):
        dots = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in line.points))
        parts.append(f'<polyline points="{dots}" fill="none" stroke="{_COLOURS[index % 3]}" stroke-width="2"/>')
        parts.append(f'<text x="{_WIDTH - 110}" y="{30 + 16 * index}" fill="{_COLOURS[index % 3]}">{line.name}</text>')
    return "\n".join([*parts, "</svg>", ""])
