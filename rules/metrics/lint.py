"""Whether a scaling rule can ever do what it says: its metric exists, its labels, kind, unit and range fit its target."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from rules.metrics import CATALOGUES, Metric, find
from rules.metrics.promql import Selector, selectors
from rules.metrics.served import SERVED
from rules.problem import Problem

_OVER_TIME: Final = frozenset({"rate", "irate", "increase", "delta", "idelta", "deriv", "resets", "changes"})
_KEEPS_RATIO: Final = frozenset({"avg", "max", "min", "quantile", "avg_over_time", "max_over_time", "min_over_time"})
_COUNTS: Final = frozenset({"count", "absent", "absent_over_time", "changes", "resets"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingRule:
    """One trigger: a served metric's name or a PromQL query, and the value per pod at which replicas are right."""

    path: str
    query: str
    target: float
    served: bool = False
    """True: `query` is the name of a metric at custom.metrics.k8s.io."""


def lint_rule(rule: ScalingRule) -> list[Problem]:
    """Problems of one rule; none means that it reads a metric that exists, and can reach its target."""
    if rule.served:
        metric = next((metric for metric in SERVED if metric.name == rule.query), None)
        if metric is None:
            names = ", ".join(m.name for m in SERVED)
            return [Problem(rule.path, rule.query, "is not served at custom.metrics.k8s.io", f"choose one of: {names}")]
        return _range_problems(rule, metric, ())
    return [*lint_query(rule.path, rule.query), *_target_problems(rule)]


def lint_query(path: str, query: str) -> list[Problem]:
    """Problems of any query (a trigger, an alert, a dashboard panel): names, labels, and counters read as gauges."""
    try:
        found = selectors(query)
    except ValueError as error:
        return [Problem(path, query, str(error), "balance the brackets")]
    if not found:
        return [Problem(path, query, "selects no series", "name a metric of the engine")]
    return [problem for selector in found for problem in _selector_problems(path, selector)]


def _selector_problems(path: str, selector: Selector) -> list[Problem]:
    known = find(selector.name)
    if known is None:
        return [Problem(path, selector.name, "is in no engine's metric catalogue", _suggestion(selector.name))]
    catalogue, metric = known
    problems = []
    allowed = {*metric.labels, *catalogue.target_labels, *(("le",) if metric.kind == "histogram" else ())}
    for label in selector.labels:
        if label not in allowed:
            problems.append(
                Problem(
                    path,
                    f"{selector.name}{{{label}}}",
                    "the metric has no such label, so the query finds nothing",
                    f"labels are: {', '.join(sorted(allowed))}",
                )
            )
    over_time = bool(_OVER_TIME & set(selector.calls))
    if metric.kind in ("counter", "histogram") and not over_time and not _COUNTS & set(selector.calls):
        problems.append(
            Problem(path, selector.name, f"is a {metric.kind} and only grows", "wrap it in rate(…[1m]) or increase()")
        )
    if metric.kind == "gauge" and {"rate", "irate", "increase"} & set(selector.calls):
        problems.append(Problem(path, selector.name, "is a gauge, of which rate() means nothing", "use it as it is"))
    if over_time and not selector.ranged and not {"rate", "irate", "increase"} & set(selector.calls[1:]):
        problems.append(Problem(path, selector.name, "rate() needs a range", f"write {selector.name}[1m]"))
    return problems


def _target_problems(rule: ScalingRule) -> list[Problem]:
    try:
        found = selectors(rule.query)
    except ValueError:
        return []
    if len(found) != 1 or (known := find(found[0].name)) is None or set(found[0].calls) & _COUNTS:
        return []
    return _range_problems(rule, known[1], found[0].calls)


def _range_problems(rule: ScalingRule, metric: Metric, calls: Iterable[str]) -> list[Problem]:
    aggregated = [call for call in calls if call in _KEEPS_RATIO or call == "sum"]
    if metric.unit in ("ratio", "percent") and "sum" in aggregated:
        return [
            Problem(
                rule.path,
                rule.query,
                f"sums a {metric.unit} over pods, so it grows with every pod added",
                "use avg() instead of sum()",
            )
        ]
    if metric.kind == "gauge" and not metric.low < rule.target <= metric.high:
        scale = " (0 to 1, not percent)" if metric.unit == "ratio" else ""
        return [
            Problem(
                rule.path,
                rule.target,
                f"{metric.name} lies between {metric.low:g} and {metric.high:g}{scale}",
                "correct the target, else the rule never fires or always does",
            )
        ]
    return []


def _suggestion(name: str) -> str:
    for catalogue in CATALOGUES:
        if name in catalogue.retired:
            return f"it is gone since {catalogue.program} {catalogue.version} or before; use {catalogue.retired[name]}"
    known = [series for catalogue in CATALOGUES for metric in catalogue.metrics for series in metric.series()]
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {close[0]}?" if close else "check it against the engine's /metrics"
