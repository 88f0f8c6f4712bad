"""What drills do to a cluster, on a real one: each act ends when the last old pod is gone and the new ones are Ready."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rules import labels, names
from settings.local_runtime import LocalRuntime
from settings.paths import local_kubeconfig
from settings.settings import Settings
from smoke.cluster import Cluster, ready
from smoke.drills.hands import Hands
from tests.real.conftest import ROOT, kubectl

NAMESPACE = "drill-hands"
MODEL = "dev-wide"
CHILD = "import subprocess, sys; sys.exit(subprocess.Popen(['sleep', '3600']).wait() and 1)"
"""Like an engine: the first process ends when the process that does the work is gone."""


def engines(role: str, replicas: int) -> dict[str, Any]:
    """A Deployment whose pods carry an engine's labels."""
    own = labels.engine_selector(MODEL, role, "ascend")
    container = {
        "name": "engine",
        "image": LocalRuntime.load().images["engine-cpu"],
        "command": ["python3", "-c", CHILD],
        "resources": {"requests": {"cpu": "1m", "memory": "16Mi"}},
    }
    spec = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    template = {"metadata": {"labels": own | {labels.ROUTED: "true"}}, "spec": spec}
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": names.engine(MODEL, role, "ascend")},
        "spec": {"replicas": replicas, "selector": {"matchLabels": own}, "strategy": rolling, "template": template},
    }


def budget(role: str) -> dict[str, Any]:
    """One pod of the role must stay, so two pods can't be evicted at once."""
    selector = {"matchLabels": labels.engine_selector(MODEL, role, "ascend")}
    spec = {"minAvailable": 1, "selector": selector}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": role}, "spec": spec}


@pytest.fixture(scope="module")
def namespace(cluster: Path) -> Iterator[str]:
    kubectl("create", "namespace", NAMESPACE)
    items = [engines("prefill", 2), engines("decode", 1), budget("prefill")]
    program = str(Path(sys.prefix, "bin", "kubectl"))
    command = [program, "--kubeconfig", str(local_kubeconfig()), "-n", NAMESPACE, "apply", "-f", "-"]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    subprocess.run(command, input=text, text=True, check=True, capture_output=True, timeout=60)
    kubectl("-n", NAMESPACE, "wait", "--for=condition=Available", "--timeout=90s", "deployment", "--all")
    yield NAMESPACE
    kubectl("delete", "namespace", NAMESPACE, "--wait=false")


@pytest.fixture
async def hands(namespace: str) -> Hands:
    settings = Settings.from_stack_file(ROOT / "Pulumi.dev.yaml")
    cluster = await Cluster.connect(settings.cluster.model_copy(update={"namespace": namespace}))
    return Hands(cluster, patience=90, pause=0.5)


async def uids(hands: Hands, role: str) -> set[str]:
    deployment = await hands.engines(MODEL, role)
    return {pod["metadata"]["uid"] for pod in await hands.pods_of(deployment) if ready(pod)}


async def test_scale_down_and_back(hands: Hands):
    deployment = await hands.engines(MODEL, "prefill")
    await hands.scale(deployment, 1)
    assert len(await uids(hands, "prefill")) == 1
    await hands.scale(deployment, 2)
    assert len(await uids(hands, "prefill")) == 2


async def test_restart_replaces_every_pod(hands: Hands):
    before = await uids(hands, "prefill")
    await hands.restart(await hands.engines(MODEL, "prefill"))
    after = await uids(hands, "prefill")
    assert len(after) == 2
    assert not before & after


async def test_kill_waits_for_the_replacement(hands: Hands):
    before = await uids(hands, "decode")
    await hands.kill(await hands.pods_of(await hands.engines(MODEL, "decode")))
    after = await uids(hands, "decode")
    assert len(after) == 1
    assert not before & after


async def test_evictions_follow_the_budget_until_all_are_replaced(hands: Hands):
    before = await uids(hands, "prefill")
    await hands.evict(await hands.pods_of(await hands.engines(MODEL, "prefill")))
    after = await uids(hands, "prefill")
    assert len(after) == 2
    assert not before & after


async def test_a_crash_restarts_the_container_of_the_same_pod(hands: Hands):
    deployment = await hands.engines(MODEL, "decode")
    (pod,) = await hands.pods_of(deployment)
    await hands.crash(pod)
    (now,) = await hands.pods_of(deployment)
    assert now["metadata"]["uid"] == pod["metadata"]["uid"]
    assert now["status"]["containerStatuses"][0]["restartCount"] > pod["status"]["containerStatuses"][0]["restartCount"]
