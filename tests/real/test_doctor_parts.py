"""The doctor on faults of the cluster, of its reader's rights and of the store: silent before each is made, found after it.

The store is Mooncake's own master with one engine of the small model; the node's kubelet is one that reported once.
"""

import asyncio
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from bench.changed_dev import Groups
from bench.small_model import MODEL, small_model
from components import kv_store, pd_serving
from components.context import Context
from components.kv_store import KvStoreArgs
from components.serving_plan import engine_plans
from rules import labels, names
from settings.local_runtime import LocalRuntime
from settings.paths import local_kubeconfig
from settings.settings import Settings
from smoke.client import chat_body
from smoke.cluster import Cluster
from smoke.cluster import ready as pod_ready
from smoke.doctor.diagnosis import Finding
from smoke.engines import Engines
from smoke.prompts import nonce, prefix
from tests.real.conftest import ROOT, kubectl
from tests.real.test_doctor_faults import apply, examine, in_namespace, pod

NAMESPACE, NODE, API = "doctor-parts", "doctor-gone", "v1.doctor.moonstack.dev"
READER = "doctor-reader"
PROMPTS, WORDS = 20, 150
"""Twice asked they are more tokens than the doctor lets pass without a hit, and more than the engine itself remembers."""
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


@pytest.fixture(scope="module")
def store(namespace: str) -> Settings:
    """A store with one engine of the small model, which has lent it nothing and holds two prompts itself."""
    config: Groups = yaml.safe_load((ROOT / "Pulumi.dev.yaml").read_text())["config"]
    small_model(config)
    config["moonstack:models"] = [config["moonstack:models"][-1] | {"connector": "mooncake-store"}]
    config["moonstack:cluster"] |= {"namespace": namespace}
    config["moonstack:kvStore"] |= {"storePods": {"replicas": 1, "segment": "64Mi"}}
    settings = Settings.from_mapping({key.removeprefix("moonstack:"): group for key, group in config.items()})
    runtime = LocalRuntime.load()
    context = Context(
        stack="dev", environment="dev", namespace=namespace, provider=cast(Any, None), images=runtime.images
    )
    args = KvStoreArgs.of(settings, "tcp")
    (plan,) = engine_plans(settings, runtime.images, runtime, "dev")
    lends, engine = kv_store.config_map(args, context), pd_serving.deployment(plan, context)
    nothing = {"mode": "standalone-store", "global_segment_size": 0}
    lends["data"]["mooncake.json"] = json.dumps(kv_store.engine_store_config(args, namespace) | nothing)
    spec = engine["spec"]["template"]["spec"]
    for of_the_stack in ("priorityClassName", "nodeSelector", "affinity"):
        spec.pop(of_the_stack, None)  # no stack is up that made the class and the node's labels
    spec["containers"][0]["args"] += ["--num-gpu-blocks-override", str(2 * 1024 // 32)]
    made = (kv_store.service(args, context), kv_store.deployment(args, context), lends, engine)
    apply([dict(one) for one in made], namespace)
    until(lambda: ready(names.KV_MASTER) and ready(plan.name), 120)
    return settings


def ready(deployment: str) -> bool:
    said = kubectl("get", "deployment", deployment, "-n", NAMESPACE, "-o", "jsonpath={.status.readyReplicas}")
    return said == "1"


def ready_pods() -> list[str]:
    """The models of the engines that are Ready."""
    items = json.loads(kubectl("get", "pods", "-n", NAMESPACE, "-l", labels.MODEL, "-o", "json"))["items"]
    return [one["metadata"]["labels"][labels.MODEL] for one in items if pod_ready(one)]


def store_findings(settings: Settings) -> set[str]:
    """What the doctor says of whether the store is used."""
    return {id for id, _ in named(settings)} & {"store-engines-missing", "store-silent", "store-puts-fail"}


def test_a_store_without_room_is_named_for_what_it_refuses_and_never_gives(store: Settings):
    assert store_findings(store) == set()
    counters = asyncio.run(ask_twice(store, [prefix(WORDS, nonce()) for _ in range(PROMPTS)]))
    assert store_findings(store) == {"store-silent", "store-puts-fail"}, counters


async def ask_twice(settings: Settings, prompts: list[str]) -> dict[str, float]:
    """Each prompt again once the engine itself has forgotten it; the engine's counters afterwards."""
    engines = Engines(await Cluster.connect(settings.cluster))
    (one,) = await engines.of(MODEL)
    for prompt in 2 * prompts:
        await engines.chat(one, chat_body(MODEL, prompt, max_tokens=1))
    return (await engines.counters([one]))[one.pod]


def test_an_engine_that_the_master_does_not_know_is_named_until_it_is_restarted_as_the_fix_says(store: Settings):
    """The stack file says that engines lend; the running one was started when they didn't. The restart brings what is declared."""
    lending = store.model_copy(update={"kv_store": store.kv_store.model_copy(update={"store_pods": None})})
    assert "store-engines-missing" not in store_findings(store)
    assert "store-engines-missing" in store_findings(lending)
    args = KvStoreArgs.of(lending, "tcp")
    lends = kv_store.engine_store_config(args, NAMESPACE) | {"global_segment_size": 64 * 2**20}
    text = json.dumps({"data": {"mooncake.json": json.dumps(lends)}})
    kubectl("patch", "configmap", args.name, "-n", NAMESPACE, "--type=merge", "--patch", text)
    kubectl(
        "delete", "pod", "-n", NAMESPACE, "-l", f"{labels.MODEL}={names.slug(MODEL)}", "--force", "--grace-period=0"
    )
    until(lambda: names.slug(MODEL) in ready_pods(), 120)
    assert "store-engines-missing" not in store_findings(lending)


def test_a_node_whose_kubelet_is_silent_is_named(namespace: str):
    """Last: the cluster gives a kubelet most of a minute."""
    ready = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
    until(lambda: kubectl("get", "node", NODE, "-o", ready) == "Unknown", 90)
    assert SILENT in named()
