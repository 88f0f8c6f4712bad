"""Plots as inline SVG, drawn from plain numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

WIDTH: Final = 340
ROW: Final = 26
LABEL: Final = 118
VALUE: Final = 62


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar; `kind` is the CSS class that colours it."""

    label: str
    value: float
    kind: str


@dataclass(frozen=True, slots=True)
class Line:
    """One series over time: (seconds, value) pairs in order of time."""

    label: str
    points: Sequence[tuple[float, float]]
    kind: str


def bars(title: str, unit: str, rows: Sequence[Bar]) -> str:
    """Horizontal bars, one a row, each with its value."""
    height = ROW * len(rows) + 6
    top = max((row.value for row in rows), default=0) or 1
    parts = [_open(title, height)]
    for index, row in enumerate(rows):
        y = 4 + index * ROW
        width = max(1.0, row.value / top * (WIDTH - LABEL - VALUE))
        parts.append(f'<text x="0" y="{y + 15}">{escape(row.label)}</text>')
        parts.append(f'<rect class="{row.kind}" x="{LABEL}" y="{y}" width="{width:.1f}" height="{ROW - 8}" rx="3"/>')
        parts.append(f'<text x="{LABEL + width + 6:.1f}" y="{y + 15}">{row.value:.3g} {escape(unit)}</text>')
    return "".join([*parts, "</svg>"])


def lines(title: str, series: Sequence[Line], height: int = 130, limit: float | None = None) -> str:
    """Series over seconds on one scale from 0, with a dashed line at `limit`."""
    points = [point for line in series for point in line.points]
    if not points:
        return ""
    end = max(x for x, _ in points) or 1
    top = max([y for _, y in points] + ([limit] if limit else [])) or 1
    left, right, floor = 34, WIDTH - 4, height - 22

    def at(x: float, y: float) -> str:
        return f"{left + x / end * (right - left):.1f},{floor - y / top * (floor - 10):.1f}"

    parts = [_open(title, height)]
    parts.append(f'<path class="axis" d="M{left},6 V{floor} H{right}"/>')
    parts.append(f'<text x="0" y="14">{top:.3g}</text><text x="0" y="{floor}">0</text>')
    parts.append(f'<text x="{right}" y="{height - 6}" text-anchor="end">{end:.0f} s</text>')
    if limit:
        (x0, y), (x1, _) = at(0, limit).split(","), at(end, limit).split(",")
        parts.append(f'<path class="limit" d="M{x0},{y} H{x1}"/>')
    for line in series:
        path = " ".join(at(x, y) for x, y in line.points)
        parts.append(f'<polyline class="{line.kind}" points="{path}"><title>{escape(line.label)}</title></polyline>')
    legend = "".join(f'<span class="key {line.kind}">{escape(line.label)}</span>' for line in series)
    return "".join([*parts, "</svg>", f'<p class="legend">{legend}</p>'])


def _open(title: str, height: int) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}"><title>{escape(title)}</title>'
