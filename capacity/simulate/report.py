"""A replay as table, plot and JSON."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from rich.console import Console
from rich.table import Table

from capacity.simulate.judge import Finding, Summary
from capacity.simulate.run import Point, Replay

_BARS = " ▁▂▃▄▅▆▇█"
_COLOURS = {"rate": "#475569", "replicas": "#2563eb", "queue": "#dc2626", "ttft": "#d97706", "cost": "#059669"}


def show(console: Console, replay: Replay, summary: Summary, found: Sequence[Finding]) -> None:
    """Figures, four lines of plot, and the findings."""
    table = Table(title=replay.target, title_justify="left", show_edge=False)
    for column in ("course over time", "least", "most", "unit"):
        table.add_column(column, justify="right" if column in ("least", "most") else "left", no_wrap=True)
    for name, unit in (
        ("rate", "requests/s"),
        ("replicas", "pods"),
        ("queue", "requests"),
        ("ttft", "s"),
        ("cost", "yuan/h"),
    ):
        values = [float(getattr(point, name)) for point in replay.points]
        plot = sparkline(values, max(20, console.width - 44))
        table.add_row(f"{name:9}{plot}", f"{min(values):.4g}", f"{max(values):.4g}", unit)
    console.print(table)
    console.print(
        f"TTFT over its target for {summary.over_ttft_seconds:.0f} s; {summary.warm_activations} warm activations; "
        f"{summary.cost:.2f} yuan over {replay.points[-1].second + replay.step:.0f} s"
    )
    for finding in found:
        console.print(f"{finding.rule} {finding.verdict}: {finding.cause}; {finding.fix}")


def sparkline(values: Sequence[float], width: int) -> str:
    """One character a slice, each slice at its maximum."""
    most = max(values) or 1.0
    slices = [
        values[len(values) * i // width : max(len(values) * (i + 1) // width, len(values) * i // width + 1)]
        for i in range(width)
    ]
    return "".join(_BARS[round((len(_BARS) - 1) * max(part) / most)] if part else " " for part in slices)


def as_json(replays: Sequence[tuple[Replay, Summary, Sequence[Finding]]]) -> dict[str, Any]:
    """Schema 1: per target the summary, the findings and the series, at most 500 points, each the highest of its time."""
    return {
        "schema": 1,
        "targets": [
            {
                "target": replay.target,
                "summary": asdict(summary),
                "findings": [asdict(finding) for finding in found],
                "series": [asdict(point) for point in _thinned(replay.points)],
            }
            for replay, summary, found in replays
        ],
    }


def as_svg(replay: Replay) -> str:
    """Stacked line plots over the length of the load, each scaled to its own maximum."""
    points, height, width = _thinned(replay.points), 90, 720
    end = points[-1].second or 1.0
    parts = []
    for row, (name, colour) in enumerate(_COLOURS.items()):
        values = [float(getattr(point, name)) for point in points]
        most, top = max(values) or 1.0, 20 + row * (height + 24)
        line = " ".join(
            f"{p.second / end * width:.1f},{top + height - v / most * height:.1f}"
            for p, v in zip(points, values, strict=True)
        )
        parts.append(f'<text x="0" y="{top - 4}" font-size="12">{name}, most {most:.4g}</text>')
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    foot = 20 + len(_COLOURS) * (height + 24)
    parts.append(f'<text x="0" y="{foot}" font-size="12">0 s</text>')
    parts.append(f'<text x="{width}" y="{foot}" font-size="12" text-anchor="end">{end:g} s</text>')
    box = f"0 0 {width} {foot + 8}"
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" font-family="sans-serif">{"".join(parts)}</svg>\n'


def _thinned(points: Sequence[Point], most: int = 500) -> list[Point]:
    """One point a slice of time, at its start, each figure at its highest there: a short peak is what a replay is for."""
    step = max(1, -(-len(points) // most))
    return [_highest(points[at : at + step]) for at in range(0, len(points), step)]


def _highest(points: Sequence[Point]) -> Point:
    most = {name: max(getattr(point, name) for point in points) for name in Point.__dataclass_fields__}
    return replace(points[0], **most | {"second": points[0].second})
