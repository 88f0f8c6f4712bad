"""Alerts, dashboard and catalogue against the live dev stack and a real Prometheus."""

import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml

from components.scaling.monitoring import rule, stack_alerts
from local.cluster.admin import client
from rules.alerts import panels
from rules.metrics import ENGINES, VLLM, find
from rules.metrics.promql import selectors
from tests.real.conftest import DevStack
from tests.real.prometheus import Prometheus, running

LIVE = ("vllm", "envoy", "mooncake-master")
"""Programs that run in dev; dev has no scalers, so the controller's metrics are checked in its unit tests."""


@pytest.fixture(scope="module")
def prometheus(dev_stack: DevStack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    ask(dev_stack)
    with client() as api:
        with running(tmp_path_factory.mktemp("prometheus"), api, dev_stack.namespace) as found:
            yield found


def ask(stack: DevStack) -> None:
    """One request through the gateway: its request metrics exist from then on."""
    body = {"model": stack.settings.models[0].name, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}
    headers = {"authorization": f"Bearer {stack.key('dev-smoke')}"}
    trust = ssl.create_default_context(cafile=str(stack.ca))
    answer = httpx.post(f"{stack.endpoint}/v1/chat/completions", json=body, headers=headers, verify=trust, timeout=60)
    assert answer.status_code == 200, answer.text


def queries(stack: DevStack) -> list[str]:
    return [*(a.query for a in stack_alerts(stack.settings)), *(p.query for p in panels(stack.namespace))]


def test_prometheus_reads_every_query(prometheus: Prometheus, dev_stack: DevStack):
    for query in queries(dev_stack):
        prometheus.query(query)


def test_every_series_of_a_query_exists_in_the_live_stack(prometheus: Prometheus, dev_stack: DevStack):
    wanted = {selector.name for query in queries(dev_stack) for selector in selectors(query)}
    live = {name for name in wanted if (known := find(name)) and known[0].program in LIVE}
    assert len(live) >= 8
    assert [name for name in sorted(live) if not prometheus.query(f"count({name})")] == []


def test_no_alert_fires_on_a_healthy_stack(prometheus: Prometheus, dev_stack: DevStack):
    firing = {alert.name for alert in stack_alerts(dev_stack.settings) if prometheus.query(alert.query)}
    assert firing == set()


def test_the_catalogue_says_what_a_real_engine_says(prometheus: Prometheus):
    kinds = {metric.name: (metric.kind, prometheus.kind(metric.name)) for metric in VLLM.metrics}
    exposed = {name: pair for name, pair in kinds.items() if pair[1] is not None}
    assert {name: pair for name, pair in exposed.items() if pair[0] != pair[1]} == {}
    signals = ENGINES["vllm"][1]
    assert {signals.waiting, signals.running, signals.kv_usage, signals.ttft} <= exposed.keys()


def test_promtool_accepts_the_rules(prometheus: Prometheus, dev_stack: DevStack, tmp_path: Path):
    rules = [rule(alert, "docs/elasticity.md", "dev") for alert in stack_alerts(dev_stack.settings)]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "moonstack", "rules": rules}]}))
    done = subprocess.run(["promtool", "check", "rules", str(tmp_path / "rules.yml")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
