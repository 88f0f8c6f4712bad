"""Violations for people and for machines: text, JSON, Markdown for pull requests, SARIF for code scanning."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from policies.catalogue import RULES
from policies.rule import Violation
from policies.shape import SHAPE_RULE
from policies.state import STATE_RULE

SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVEL: Final = {"low": "note", "medium": "warning", "high": "error", "critical": "error"}


def as_text(violations: Sequence[Violation]) -> str:
    """One line a violation, the gravest first, then the sum."""
    lines = [f"{v.enforcement:9} {v.severity:8} {v.rule}: {v.object}: {_place(v)}{v.message}" for v in violations]
    mandatory = sum(v.enforcement == "mandatory" for v in violations)
    return "\n".join([*lines, f"{len(violations)} violation(s), {mandatory} mandatory"]) + "\n"


def as_json(violations: Sequence[Violation]) -> str:
    """The command's contract: schema 1."""
    fields = ("rule", "severity", "enforcement", "object", "path", "message")
    rows = [{name: getattr(violation, name) for name in fields} for violation in violations]
    return json.dumps({"schema": 1, "violations": rows}, indent=2, ensure_ascii=False) + "\n"


def as_markdown(violations: Sequence[Violation]) -> str:
    """A table for a pull request's comment."""
    if not violations:
        return "**Policies:** no violation.\n"
    head = ["| | rule | object | where | what to do |", "|---|---|---|---|---|"]
    rows = [_row(violation) for violation in violations]
    return "\n".join([f"**Policies:** {len(violations)} violation(s).", "", *head, *rows]) + "\n"


def as_sarif(violations: Sequence[Violation]) -> str:
    """SARIF 2.1.0: one run, one result a violation, rules with their descriptions."""
    rules = [
        {"id": rule.id, "shortDescription": {"text": rule.description}, "properties": {"concern": rule.concern}}
        for rule in (*RULES, SHAPE_RULE, STATE_RULE)
    ]
    driver = {"name": "moonstack-policies", "rules": rules}
    run = {"tool": {"driver": driver}, "results": [_result(violation) for violation in violations]}
    return json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


FORMATS: Final[Mapping[str, Callable[[Sequence[Violation]], str]]] = {
    "text": as_text,
    "json": as_json,
    "markdown": as_markdown,
    "sarif": as_sarif,
}


def _result(violation: Violation) -> dict[str, Any]:
    location: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": f"{violation.object}: {violation.path}"}]}
    if violation.source:
        location["physicalLocation"] = {"artifactLocation": {"uri": quote(violation.source)}}
    level = "warning" if violation.enforcement == "advisory" else _LEVEL[violation.severity]
    return {
        "ruleId": violation.rule,
        "level": level,
        "message": {"text": f"{violation.object}: {_place(violation)}{violation.message}"},
        "locations": [location],
    }


def _place(violation: Violation) -> str:
    return f"{violation.path}: " if violation.path else ""


def _row(v: Violation) -> str:
    mark = "⛔" if v.enforcement == "mandatory" else "⚠️"
    return f"| {mark} {v.severity} | `{v.rule}` | {_cell(v.object)} | `{_cell(v.path)}` | {_cell(v.message)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
