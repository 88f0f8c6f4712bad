"""The warm pool's week, its cost, and the documents that go with alerts and settings."""

import re
from pathlib import Path

import pytest

from capacity.telemetry import Telemetry
from rules.alerts import alerts
from rules.metrics import CATALOGUES
from rules.warm_pool import cost_per_month, reviewed

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("replicas", "activations", "size"),
    [(2, 0, 1), (2, 2, 1), (2, 3, 2), (2, 14, 2), (2, 15, 3), (4, 100, 4), (1, 8, 2)],
)
def test_the_pool_is_sized_by_its_week(replicas: int, activations: int, size: int):
    assert reviewed(replicas, activations, least=3, low=1, high=4) == size


def test_two_warm_pods_of_one_chip_at_25_yuan_cost_36000_a_month():
    assert cost_per_month(2, 1, 25) == 36_000


def test_every_alert_has_a_runbook():
    text = (ROOT / "docs" / "elasticity.md").read_text()
    headings = re.findall(r"^### (\w+)$", text, re.MULTILINE)
    assert sorted(headings) == sorted(alert.name for alert in alerts("n", 2, 0.3, sharing=["m"]))


def test_every_test_that_the_settings_table_names_exists():
    text = (ROOT / "docs" / "elasticity.md").read_text()
    tests = "".join(path.read_text() for path in (ROOT / "tests" / "unit").rglob("test_*.py"))
    assert [name for name in set(re.findall(r"`(test_\w+)`", text)) if f"def {name}(" not in tests] == []


def test_the_controllers_own_metrics_are_those_of_the_catalogue():
    catalogue = next(c for c in CATALOGUES if c.program == "moonstack-capacity")
    served = {metric.name: metric.type for metric in Telemetry().registry.collect()}
    declared = {m.name.removesuffix("_total") if m.kind == "counter" else m.name: m.kind for m in catalogue.metrics}
    assert served == declared
