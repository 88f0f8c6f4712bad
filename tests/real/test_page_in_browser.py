"""The page in a real browser: at a phone's width nothing sticks out."""

import re
import shutil
import subprocess
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

import pytest

from smoke.page.render import report_page
from smoke.report import Report

PHONE = 360
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium on PATH")

WRAPPER = """<!doctype html><body><iframe id="f" width="{width}" height="800" srcdoc="{page}"></iframe><script>
document.getElementById("f").onload = event => {{
  const root = event.target.contentDocument.documentElement;
  document.body.setAttribute("data-widths", root.scrollWidth + "/" + root.clientWidth);
}};</script></body>"""


def report() -> Report:
    """A report with everything that is long: names, digests, causes, fixes, plots."""
    long = "decode loaded no KV that prefill had computed, " * 6
    probe: dict[str, Any] = {"class": "safe", "figure": 0.2934, "unit": "warm/cold TTFT", "threshold": 0.25}
    probes = [
        {
            "name": "shared-prefix:" + "a-model-with-a-long-name" * 4,
            "verdict": "fail",
            "cause": long,
            "fix": long,
            **probe,
        },
        {"name": "chat:m", "verdict": "pass", **probe},
    ]
    evidence = {"shared-prefix:m": {"cold": [3.1, 3.0], "warm": [0.4, 0.5], "hits": 900}}
    facts = {
        "stack": "prod",
        "environment": "prod",
        "release": "0123456789abcdef" * 4,
        "content": "c",
        "commit": "d" * 40,
    }
    versions = {"image engine-ascend": "registry.example/" + "very-long-repository/" * 6 + "@sha256:" + "e" * 64}
    return Report.model_validate(
        {**facts, "verdict": "fail", "probes": probes, "started": datetime.now(UTC), "seconds": 42, "evidence": evidence,
         "versions": versions}
    )  # fmt: skip


def widths(page: str, folder: Path) -> tuple[int, int]:
    """Width of the content and of the window, in a window as wide as a phone."""
    path = folder / "wrapper.html"
    path.write_text(WRAPPER.format(width=PHONE, page=escape(page)))
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", path.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    found = re.search(r'data-widths="(\d+)/(\d+)"', dom)
    assert found, dom[-500:]
    return int(found[1]), int(found[2])


def test_the_page_fits_a_phone(tmp_path: Path):
    content, window = widths(report_page(report(), {}), tmp_path)
    assert window <= PHONE
    assert content <= window


def test_a_page_that_does_not_wrap_is_seen(tmp_path: Path):
    content, window = widths(report_page(report(), {}).replace("overflow-wrap: anywhere", ""), tmp_path)
    assert content > window
