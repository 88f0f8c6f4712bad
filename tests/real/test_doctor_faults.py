"""The doctor on real faults: each is made in a namespace of its own, found, and gone with the namespace."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rules import labels, names, ports
from settings.local_runtime import LocalRuntime
from settings.paths import local_kubeconfig
from settings.settings import Settings
from smoke.cluster import Cluster
from smoke.doctor.catalogue import CATALOGUE
from smoke.doctor.diagnosis import Finding, findings
from smoke.doctor.gather import Gatherer
from smoke.routers import SELECTOR
from tests.real.conftest import ROOT, kubectl

NAMESPACE = "doctor-faults"
PAUSE = "localhost/moonstack/pause:1"
PATIENCE_SECONDS = 90
UNTIL_TOLD = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit()); signal.pause()"
RECOMPUTE = '{"kv_connector":"MooncakeStoreConnector","kv_load_failure_policy":"recompute"}'


def pod(name: str, own: dict[str, str] | None = None, **container: Any) -> dict[str, Any]:
    """A pod of one container; keys that belong to the pod's spec are given as `spec`."""
    spec = container.pop("spec", {})
    one = {"name": "c", "image": PAUSE, "imagePullPolicy": "IfNotPresent", **container}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": own or {}},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [one], **spec},
    }


def deployment(name: str, **more: Any) -> dict[str, Any]:
    """A Deployment of one idle pod."""
    template = {"metadata": {"labels": {"app": name}}, "spec": pod(name)["spec"]}
    template["spec"].pop("terminationGracePeriodSeconds")
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template, **more}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def hpa(name: str, target: str) -> dict[str, Any]:
    """A scaler on a Pods metric."""
    metric = {"metric": {"name": "inference_queue_depth"}, "target": {"type": "AverageValue", "averageValue": "10"}}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
            "minReplicas": 1,
            "maxReplicas": 2,
            "metrics": [{"type": "Pods", "pods": metric}],
        },
    }


def python(script: str, **more: Any) -> dict[str, Any]:
    """A container that runs a few lines of Python, its last words kept as the termination message."""
    image = LocalRuntime.load().images["capacity"]
    command = ["python3", "-c", script]
    return {"image": image, "command": command, "terminationMessagePolicy": "FallbackToLogsOnError", **more}


def unrouted() -> dict[str, Any]:
    own = {labels.ROLE: "prefill", labels.MODEL: "dev-wide", "moonstack.dev/warm-pool": "false", labels.ROUTED: "false"}
    return pod("unrouted", own, spec={"terminationGracePeriodSeconds": 600})


def engine(name: str, identity: str, transfer: str) -> dict[str, Any]:
    """A pod that counts as a Ready engine of dev's model, without PYTHONHASHSEED."""
    own = {labels.ROLE: "decode", labels.MODEL: "dev-wide", labels.ROUTED: "true", "moonstack.dev/warm-pool": "false"}
    thing = pod(name, own, **python(UNTIL_TOLD), spec={"terminationGracePeriodSeconds": 600})
    thing["spec"]["containers"][0]["command"] += ["--kv-transfer-config", transfer]
    thing["metadata"]["annotations"] = {labels.KV_IDENTITY: identity}
    return thing


def router() -> dict[str, Any]:
    """A pod that counts as dev's router, whose list still has an engine that is gone."""
    answer = "b'[\"http://192.0.2.7:8000\"]'"
    script = f"""
from http.server import BaseHTTPRequestHandler, HTTPServer
class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write({answer})
HTTPServer(("", {ports.ROUTER}), Answer).serve_forever()
"""
    return pod(f"{names.router('dev-wide')}-stale", dict(SELECTOR), **python(script))


def faults() -> dict[str, list[dict[str, Any]]]:
    """Diagnosis → the objects that make its fault."""
    missing = {"volumes": [{"name": "v", "configMap": {"name": "mooncake-store"}}]}
    secret = [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "no-such-secret", "key": "k"}}}]
    short = {labels.ROLE: "decode", labels.MODEL: "dev-wide", labels.ROUTED: "true", "moonstack.dev/warm-pool": "false"}
    return {
        "chips-insufficient": [pod("chips", resources={"limits": {"huawei.com/Ascend910": "4000"}})],
        "no-node-fits": [pod("nowhere", spec={"nodeSelector": {"moonstack.dev/no-such": "node"}})],
        "mount-fails": [pod("mount", spec=missing, volumeMounts=[{"name": "v", "mountPath": "/v"}])],
        "image-missing": [pod("image", image="localhost/no-such-image:1")],
        "configuration-missing": [pod("configuration", env=secret)],
        "crash-loop": [pod("crash", **python("raise SystemExit(7)"))],
        "store-component-missing": [pod("store", **python("import mooncake.store"))],
        "out-of-memory": [pod("memory", **python("x = b'x' * 2**28", resources={"limits": {"memory": "64Mi"}}))],
        "ready-not-routed": [unrouted()],
        "router-stale": [router()],
        "grace-too-short": [pod("short", short, spec={"terminationGracePeriodSeconds": 1})],
        "metrics-api-missing": [deployment("alone"), hpa("alone", "alone")],
        "two-scalers": [deployment("shared"), hpa("first", "shared"), hpa("second", "shared")],
        "scaler-off": [deployment("off", replicas=0), hpa("off", "off")],
        "rollout-stuck": [deployment("stuck", progressDeadlineSeconds=2, minReadySeconds=1, **_never_ready())],
        "store-master-down": [],
        "not-ready": [pod("slow", readinessProbe={"httpGet": {"path": "/", "port": 1}, "periodSeconds": 1})],
        "store-identities-differ": [engine("one", "a", RECOMPUTE), engine("two", "b", RECOMPUTE)],
        "hash-seed-differs": [],
        "load-failure-fatal": [engine("fatal", "a", '{"kv_connector":"MooncakeStoreConnector"}')],
    }


def _never_ready() -> dict[str, Any]:
    spec = pod("stuck", spec={"nodeSelector": {"moonstack.dev/no-such": "node"}})["spec"]
    spec.pop("terminationGracePeriodSeconds")
    return {"template": {"metadata": {"labels": {"app": "stuck"}}, "spec": spec}}


def apply(objects: list[dict[str, Any]], namespace: str = NAMESPACE) -> None:
    """kubectl apply from stdin."""
    program = str(Path(sys.prefix, "bin", "kubectl"))
    command = [program, "--kubeconfig", str(local_kubeconfig()), "-n", namespace, "apply", "-f", "-"]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    subprocess.run(command, input=text, text=True, check=True, capture_output=True, timeout=60)


def in_namespace(namespace: str) -> Settings:
    """dev's settings for another namespace."""
    settings = Settings.from_stack_file(ROOT / "Pulumi.dev.yaml")
    return settings.model_copy(update={"cluster": settings.cluster.model_copy(update={"namespace": namespace})})


def examine(settings: Settings) -> list[Finding]:
    """The doctor's findings on a stack of these settings."""

    async def look() -> list[Finding]:
        return findings(CATALOGUE, await Gatherer(settings, await Cluster.connect(settings.cluster), "dev").facts())

    return asyncio.run(look())


@pytest.fixture(scope="module")
def found(cluster: Path) -> Iterator[dict[str, Finding]]:
    """What the doctor finds once all faults are made at once; it is asked until every one shows, or patience ends."""
    kubectl("create", "namespace", NAMESPACE)
    settings = in_namespace(NAMESPACE)
    try:
        before = {one.id for one in examine(settings)}
        apply([thing for objects in faults().values() for thing in objects])
        ends, seen = time.monotonic() + PATIENCE_SECONDS, {}
        while time.monotonic() < ends and not set(faults()) <= set(seen):
            seen |= {one.id: one for one in examine(settings) if one.id not in before}
            time.sleep(2)
        yield seen
    finally:
        kubectl("delete", "namespace", NAMESPACE, "--wait=false")


FAULTS = (
    "chips-insufficient",
    "no-node-fits",
    "mount-fails",
    "image-missing",
    "configuration-missing",
    "crash-loop",
    "store-component-missing",
    "out-of-memory",
    "ready-not-routed",
    "router-stale",
    "grace-too-short",
    "metrics-api-missing",
    "two-scalers",
    "scaler-off",
    "rollout-stuck",
    "store-master-down",
    "not-ready",
    "store-identities-differ",
    "hash-seed-differs",
    "load-failure-fatal",
)


def test_every_fault_that_is_made_is_asked_for(cluster: Path):
    assert set(faults()) == set(FAULTS)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_fault_is_found_on_the_real_cluster(found: dict[str, Finding], fault: str):
    assert fault in found, f"found only: {', '.join(found)}"
    assert found[fault].fix
