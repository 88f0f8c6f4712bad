"""Folders decide markers, so that no test can forget its own."""

from pathlib import Path

import pytest

AGAIN = ("envoy", "real")
"""Real processes on a machine that may do other things meanwhile: a failure counts when it comes twice; each is printed."""
FOLDERS = {"unit": "unit", "policies": "policies", "envoy": "envoy", "real": "real"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    root = Path(__file__).parent
    for item in items:
        folder = item.path.relative_to(root).parts[0]
        if folder in FOLDERS:
            item.add_marker(FOLDERS[folder])
        if folder in AGAIN:
            item.add_marker(pytest.mark.flaky(reruns=1, reruns_delay=3))
