"""Fills the page's template."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined, Template

from smoke.compare import regressions
from smoke.cost import LoadCost, RunCost
from smoke.page.plots import Bar, bars
from smoke.redact import REDACTOR
from smoke.report import ProbeResult, Report

Plots = list[tuple[str, str]]
Section = tuple[str, Sequence[tuple[str, str]]]


def report_page(report: Report, proves: Mapping[str, str], earlier: Report | None = None) -> str:
    """The page of a smoke report; `proves` says by probe name what a probe shows."""
    about = [
        ("Stack", f"{report.stack} ({report.environment})"),
        ("Release", report.release),
        ("Content", report.content),
    ]
    about += [("Commit", report.commit)] if report.commit else []
    return page(
        stack=report.stack,
        verdict=report.verdict,
        summary=f"{report.started:%Y-%m-%d %H:%M} UTC, {len(report.probes)} probes in {report.seconds:g} s",
        regressions=regressions(earlier, report) if earlier else [],
        rows=[_row(probe, proves) for probe in report.probes],
        plots=_plots(report.evidence),
        sections=[*_cost(report.cost), *_warm(report), ("What ran", [*about, *report.versions.items()])],
    )


def page(
    *,
    stack: str,
    verdict: str,
    summary: str,
    regressions: Sequence[Any] = (),
    rows: Sequence[Mapping[str, Any]] = (),
    plots: Plots | None = None,
    sections: Sequence[Section] = (),
) -> str:
    """A page of verdict, rows, plots and facts; keys are masked wherever one slipped into a text."""
    html = _template().render(
        stack=stack,
        verdict=verdict,
        summary=summary,
        regressions=regressions,
        rows=rows,
        plots=plots or [],
        sections=sections,
    )
    return REDACTOR.text(html)


@cache
def _template() -> Template:
    text = Path(__file__).with_name("page.html.j2").read_text()
    return Environment(autoescape=True, undefined=StrictUndefined).from_string(text)


def _cost(cost: RunCost | None) -> list[Section]:
    """Yuan an hour, at the channel, and a million tokens within the objective where a load was measured."""
    if cost is None:
        return []
    within = f"within {cost.ttft_objective_seconds:g} s to the first token"
    unknown = "no good token" if cost.loads else "not measured; run with --classes disruptive"

    def yuan(value: float | None) -> str:
        return unknown if value is None else f"{value:g} yuan"

    rows = [
        (f"a million tokens {within}", yuan(cost.per_million_tokens)),
        ("the same over answer tokens alone", yuan(cost.per_million_answer_tokens)),
        *((f"load of {name}", _load(load)) for name, load in cost.loads.items()),
        (
            "chips an hour",
            f"{cost.per_hour['declared']:g} yuan ({cost.per_hour['minimum']:g} to {cost.per_hour['maximum']:g})",
        ),
        (
            "warm pool",
            f"{cost.per_hour['warmPool']:g} yuan an hour, {cost.per_hour.get('warmPoolPerMonth', 0):,.0f} a month",
        ),
        ("spent at the channel by this run", f"{cost.channel:g} yuan"),
    ]
    if cost.channel_tokens_without_price:
        rows.append(("channel tokens without a price, not in it", str(cost.channel_tokens_without_price)))
    return [("Cost", rows)]


def _warm(report: Report) -> list[Section]:
    """Each warm pool's week; nothing where there is none."""
    rows = [(week.target, week.line()) for week in report.warm_pools]
    return [("Warm pool", rows)] if rows else []


def _load(load: LoadCost) -> str:
    tokens = f"{load.prompt_tokens} prompt and {load.answer_tokens} answer tokens"
    return f"{load.good_requests} of {load.requests} requests good, {tokens} in {load.seconds:g} s, {load.yuan:g} yuan"


def _row(probe: ProbeResult, proves: Mapping[str, str]) -> dict[str, Any]:
    unit = probe.unit or ""
    return {
        "name": probe.name,
        "verdict": probe.verdict,
        "proves": proves.get(probe.name, ""),
        "figure": "" if probe.figure is None else f"{probe.figure:g}",
        "limit": "" if probe.threshold is None else f"{unit}, limit {probe.threshold:g}",
        "cause": probe.cause if probe.verdict != "pass" else None,
        "fix": probe.fix,
    }


def _plots(evidence: Mapping[str, Any]) -> Plots:
    """A bar chart for each probe that measured the same thing twice."""
    plots: Plots = []
    for name, measured in evidence.items():
        kind, _, model = name.partition(":")
        if kind == "shared-prefix":
            rows = [Bar(f"cold {n}", value, "cold") for n, value in enumerate(measured["cold"], 1)]
            rows += [Bar(f"shared {n}", value, "warm") for n, value in enumerate(measured["warm"], 1)]
            plots.append((f"First token of {model}, without and with a shared prefix", bars(name, "s", rows)))
        elif kind == "second-replica":
            rows = [Bar("first replica", measured["cold"], "cold"), Bar("second replica", measured["second"], "second")]
            title = f"One token of {model} on two replicas ({measured['hits']:.0f} tokens from the store)"
            plots.append((title, bars(name, "s", rows)))
        elif kind == "compare":
            rows = [
                Bar("cluster", measured["cluster"]["seconds"], "warm"),
                Bar("channel", measured["channel"]["seconds"], "second"),
            ]
            plots.append((f"The same request to {model} in the cluster and at the channel", bars(name, "s", rows)))
    return plots
