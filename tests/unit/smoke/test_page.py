"""The page is whole in itself, names what failed, and holds no key."""

import re
import secrets
from datetime import UTC, datetime
from typing import Any

from smoke.page.plots import Bar, Line, bars, lines
from smoke.page.render import report_page
from smoke.redact import REDACTOR
from smoke.report import Report

PROBES: list[dict[str, Any]] = [
    {"name": "chat:m", "class": "safe", "verdict": "pass", "figure": 4, "unit": "tokens", "threshold": 1},
    {"name": "models", "class": "safe", "verdict": "fail", "cause": "missing: <b>x</b>", "fix": "run pulumi up"},
]


def report(probes: list[dict[str, Any]]) -> Report:
    evidence = {
        "shared-prefix:m": {"cold": [3.1, 3.0], "warm": [0.4, 0.5], "hits": 900},
        "compare:m": {"cluster": {"seconds": 0.8}, "channel": {"seconds": 1.9}},
    }
    return Report.model_validate(
        {
            "verdict": "fail",
            "stack": "dev",
            "environment": "dev",
            "release": "r",
            "content": "c",
            "started": datetime.now(UTC),
            "seconds": 12,
            "probes": probes,
            "evidence": evidence,
            "versions": {"model m": "revision abc"},
        }
    )


def test_the_page_needs_nothing_from_outside_and_runs_nothing():
    html = report_page(report(PROBES), {"chat:m": "a chat is answered"})
    assert not re.search(r"https?://|<script|<link|<img|url\(", html)
    assert "width=device-width" in html


def test_the_page_names_what_was_shown_and_what_failed_with_its_fix():
    html = report_page(report(PROBES), {"chat:m": "a chat is answered"})
    assert "not proven" in html
    assert "a chat is answered" in html
    assert "missing: &lt;b&gt;x&lt;/b&gt;" in html, "texts of the stack are escaped"
    assert "run pulumi up" in html
    assert html.count("<rect") == 6


def test_a_regression_against_an_earlier_report_is_named():
    earlier = report([PROBES[1] | {"verdict": "pass"}])
    assert "Worse than before" in report_page(report(PROBES), {}, earlier)
    assert "Worse than before" not in report_page(report(PROBES), {}, report(PROBES))


def test_a_key_that_slipped_into_a_cause_is_masked():
    value = secrets.token_urlsafe(24)
    REDACTOR.learn(value)
    assert value not in report_page(report([PROBES[1] | {"cause": f"got {value}"}]), {})


def test_bars_are_as_long_as_their_values():
    widths = [
        float(w)
        for w in re.findall(r'<rect[^>]* width="([\d.]+)"', bars("t", "s", [Bar("a", 4, "cold"), Bar("b", 1, "warm")]))
    ]
    assert widths[0] == 4 * widths[1]


def test_lines_share_one_scale_and_mark_the_limit():
    svg = lines("t", [Line("a", [(0, 0), (10, 5)], "cold")], limit=2)
    assert "polyline" in svg
    assert 'class="limit"' in svg
    assert lines("t", [Line("a", [], "cold")]) == ""
