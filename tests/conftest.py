"""Folders decide markers, so that no test can forget its own; what every test needs is compiled once."""

import gc
import sys
from pathlib import Path

import pytest

from settings.paths import cache_dir

if (
    sys.dont_write_bytecode
):  # a third of the unit suite's time is compiling: kept beside the builds, not in the checkout
    sys.dont_write_bytecode, sys.pycache_prefix = False, str(cache_dir() / "pycache")

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
        if "cluster" in getattr(item, "fixturenames", ()):
            item.add_marker("cluster")


def pytest_collection_finish() -> None:
    """Libraries and collected tests stay to the end: the garbage collector need not go through them again and again."""
    gc.collect()
    gc.freeze()
