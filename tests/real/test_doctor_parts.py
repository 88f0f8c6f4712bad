"""The doctor on faults of the cluster itself and of its reader's rights: silent before each is made, found after it.

The node's kubelet is one that reported once and never again.
"""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from settings.paths import local_kubeconfig
from settings.settings import Settings
from smoke.doctor.diagnosis import Finding
from tests.real.conftest import ROOT, kubectl
from tests.real.test_doctor_faults import apply, examine, in_namespace, pod

NAMESPACE, NODE, API = "doctor-parts", "doctor-gone", "v1.doctor.moonstack.dev"
READER = "doctor-reader"
SILENT = ("node-not-ready", f"node/{NODE}")


@pytest.fixture(scope="module")
def namespace(cluster: Path) -> Iterator[str]:
    """A namespace, and a node that carries a pod of it and whose kubelet reports once, now."""
    kubectl("create", "namespace", NAMESPACE)
    try:
        apply([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}, "spec": {"unschedulable": True}}])
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        state = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now}
        status = {"status": {"conditions": [{**state, "lastTransitionTime": now}]}}
        kubectl("patch", "node", NODE, "--subresource=status", "--type=merge", "--patch", json.dumps(status))
        apply([pod("resident", spec={"nodeName": NODE})], NAMESPACE)
        until(lambda: bool(root_ca()))
        yield NAMESPACE
    finally:
        kubectl("delete", "apiservice", API, "--ignore-not-found")
        kubectl("delete", "clusterrolebinding,clusterrole", READER, "--ignore-not-found")
        kubectl("delete", "pod", "resident", "-n", NAMESPACE, "--force", "--grace-period=0", "--ignore-not-found")
        kubectl("delete", "node", NODE, "--ignore-not-found")
        kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def named(settings: Settings | None = None) -> dict[tuple[str, str], Finding]:
    """Diagnosis and object → what the doctor says."""
    return {(one.id, one.object): one for one in examine(settings or in_namespace(NAMESPACE))}


def until(condition: Any, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.5)


def root_ca() -> str:
    return kubectl("get", "configmap", "kube-root-ca.crt", "-n", NAMESPACE, "-o", "name", check=False)


def test_a_node_whose_kubelet_has_just_reported_is_not_named(namespace: str):
    assert SILENT not in named()


def test_an_empty_root_ca_is_named(namespace: str):
    """Immutable, so that the controller manager, which has a CA, can't put it back."""
    fault = ("root-ca-empty", "configmap/kube-root-ca.crt")
    assert fault not in named()
    empty = json.dumps({"data": {"ca.crt": ""}, "immutable": True})
    kubectl("patch", "configmap", "kube-root-ca.crt", "-n", namespace, "--type=merge", "--patch", empty)
    assert fault in named()


def test_an_aggregated_api_without_its_pods_is_named(namespace: str):
    fault = ("aggregated-api-down", f"apiservice/{API}")
    assert fault not in named()
    version, _, group = API.partition(".")
    spec = {"group": group, "version": version, "groupPriorityMinimum": 1, "versionPriority": 1}
    service = {"service": {"namespace": namespace, "name": "nobody"}, "insecureSkipTLSVerify": True}
    body = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": API}}
    apply([body | {"spec": spec | service}])
    try:
        until(lambda: fault in named())
    finally:
        kubectl("delete", "apiservice", API)
    assert fault not in named()


def test_what_a_reader_may_not_list_is_named_and_the_documented_rights_are_enough(namespace: str, tmp_path: Path):
    rules = yaml.safe_load((ROOT / "docs" / "smoke.md").read_text().partition("```yaml\n")[2].partition("```")[0])[
        "rules"
    ]
    wide = [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]},
        {"apiGroups": ["apiregistration.k8s.io"], "resources": ["apiservices"], "verbs": ["list"]},
    ]
    rbac, group = "rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io"
    who = [{"kind": "ServiceAccount", "name": READER, "namespace": namespace}]
    meta = {"metadata": {"name": READER}}
    apply(
        [
            {"apiVersion": "v1", "kind": "ServiceAccount", **meta},
            {"apiVersion": rbac, "kind": "Role", **meta, "rules": rules},
            {"apiVersion": rbac, "kind": "ClusterRole", **meta, "rules": wide},
            *(
                {
                    "apiVersion": rbac,
                    "kind": f"{kind}Binding",
                    **meta,
                    "roleRef": {"apiGroup": group, "kind": kind, "name": READER},
                    "subjects": who,
                }
                for kind in ("Role", "ClusterRole")
            ),
        ],
        namespace,
    )
    settings = as_reader(namespace, tmp_path / "kubeconfig")
    until(lambda: not blind(settings))
    kubectl("delete", "clusterrolebinding", READER)
    until(lambda: blind(settings) == {"nodes", "aggregated APIs"})


def as_reader(namespace: str, file: Path) -> Settings:
    """The stack's settings with the reader's own kubeconfig."""
    config = yaml.safe_load(local_kubeconfig().read_text())
    token = kubectl("create", "token", READER, "-n", namespace).strip()
    config["users"] = [{"name": one["name"], "user": {"token": token}} for one in config["users"]]
    file.touch(mode=0o600)
    file.write_text(yaml.safe_dump(config))
    settings = in_namespace(namespace)
    cluster = settings.cluster.model_copy(update={"kubeconfig": str(file)})
    return settings.model_copy(update={"cluster": cluster})


def blind(settings: Settings) -> set[str]:
    """What the doctor says that it could not look at."""
    return {thing for id, thing in named(settings) if id == "not-readable"}


def test_a_node_whose_kubelet_is_silent_is_named(namespace: str):
    """Last: the cluster gives a kubelet most of a minute."""
    ready = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
    until(lambda: kubectl("get", "node", NODE, "-o", ready) == "Unknown", 90)
    assert SILENT in named()
