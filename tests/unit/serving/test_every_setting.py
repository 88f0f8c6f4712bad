"""Every setting of pools, models, store, Kthena and network does something: changed alone, it changes objects, costs or what is refused."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from components import kv_store, pd_serving, router
from components.kthena.autoscaling import autoscaling_objects
from components.kthena.networking import model_route, model_server
from components.kthena.serving import model_serving
from components.kv_store import KvStoreArgs
from components.node_pool import NodePool, karpenter_pool
from components.pods.store import store_deployment
from components.pre_pull import PrePullArgs
from components.serving_plan import engine_plans
from settings.boundary import network_policies
from settings.capacity_plan import costs
from settings.errors import SettingsError
from settings.settings import Settings
from settings.sharing import store_protocols
from tests.unit.components.conftest import IMAGES
from tests.unit.pulumi_engine import deploy
from tests.unit.serving.stacks import REVISION, stack
from tests.unit.serving.test_kthena_objects import CONTEXT

GPU, NPU, BIG, SMALL, FLAT = "nodePools.1", "nodePools.0", "models.0", "models.1", "models.2"
CHANGES: dict[str, Any] = {
    f"{GPU}.name": "gpus",
    f"{GPU}.mode": "existing",
    f"{GPU}.chip": "nvidia-a100",
    f"{GPU}.driverStack": "mig-3g.40gb",
    f"{NPU}.arch": "amd64",
    f"{GPU}.count": 5,
    f"{GPU}.chipsPerNode": 4,
    f"{GPU}.cpu": "1",
    f"{GPU}.memory": "16Gi",
    f"{GPU}.poolLabel": "high-compute",
    f"{GPU}.nvlink": True,
    f"{GPU}.nodeClassRef.group": "karpenter.example",
    f"{GPU}.nodeClassRef.kind": "OtherClass",
    f"{GPU}.nodeClassRef.name": "other",
    f"{GPU}.topologyKey": "example/rack",
    f"{GPU}.rdmaResource": "rdma/other",
    f"{GPU}.tolerations.0.key": "example/other",
    f"{GPU}.tolerations.0.value": "other",
    f"{GPU}.tolerations.0.effect": "NoExecute",
    f"{GPU}.costPerChipHour": 99,
    f"{SMALL}.name": "tiny",
    f"{FLAT}.shape": "pd",
    f"{FLAT}.backend": "kthena",
    f"{FLAT}.weights.source": "pvc",
    f"{SMALL}.weights.location": "s3://other/small",
    f"{SMALL}.weights.revision": REVISION[::-1],
    f"{SMALL}.weights.size": "20Gi",
    f"{SMALL}.weights.loadBandwidth": "10Mi",
    f"{SMALL}.weights.downloadBandwidth": "10Mi",
    f"{SMALL}.weights.checksums": "b" * 64,
    f"{SMALL}.weights.endpoint": "https://other.example",
    f"{SMALL}.weights.credentialsSecret": "other",
    f"{SMALL}.weights.cache.path": "/var/other",
    f"{SMALL}.weights.cache.limit": "90Gi",
    f"{SMALL}.weights.offline": True,
    f"{FLAT}.engine.build": "cpu",
    f"{SMALL}.engine.version": "0.30.0",
    f"{SMALL}.engine.dtype": "float16",
    f"{SMALL}.engine.quantization": "fp8",
    f"{SMALL}.engine.blockSize": 32,
    f"{SMALL}.engine.maxModelLen": 1024,
    f"{SMALL}.engine.maxNumSeqs": 7,
    f"{SMALL}.engine.hashSeed": 7,
    f"{SMALL}.engine.extraArgs": ["--enforce-eager"],
    f"{SMALL}.connector": "mooncake-store",
    f"{SMALL}.prefill.pool": "npu",
    f"{SMALL}.prefill.replicas": 2,
    f"{SMALL}.prefill.chips": 2,
    f"{BIG}.prefill.nodes": 2,
    f"{SMALL}.prefill.tensorParallel": 2,
    f"{SMALL}.prefill.cpu": "3",
    f"{SMALL}.prefill.memory": "33Gi",
    f"{SMALL}.prefill.memoryLimit": "40Gi",
    f"{SMALL}.decode.replicas": 2,
    f"{FLAT}.serve.replicas": 2,
    f"{BIG}.groups": 2,
    f"{SMALL}.kvPort": 7777,
    f"{BIG}.route.weight": 60,
    f"{BIG}.route.targets.0.model": "big",
    f"{BIG}.route.targets.0.weight": 11,
    f"{BIG}.route.rateLimit.inputTokens": 11,
    f"{BIG}.route.rateLimit.outputTokens": 11,
    f"{BIG}.route.rateLimit.unit": "hour",
    f"{SMALL}.priority": "high",
    f"{SMALL}.prePull": True,
    f"{SMALL}.router.replicas": 3,
    f"{SMALL}.router.policy": "random",
    f"{SMALL}.rollout": "blueGreen",
    f"{SMALL}.longestRequestSeconds": 77,
    "kvStore.enabled": False,
    "kvStore.segment": "3Gi",
    "kvStore.buffer": "3Gi",
    "kvStore.protocol": "rdma",
    "kvStore.device": "mlx5_0",
    "kvStore.clientTtlSeconds": 77,
    "kvStore.ha.etcd": ["other.example:2379"],
    "kvStore.ha.masters": 3,
    "kvStore.storePods.replicas": 3,
    "kvStore.storePods.segment": "3Gi",
    "kvStore.storePods.memory": "9Gi",
    "kvStore.storePods.cpu": "3",
    "kvStore.storePods.pool": "npu",
    "kvStore.storePods.engineSegments": True,
    "kvStore.leaseTtlMs": 77_000,
    "kthena.release": "1.0",
    "kthena.scheduler": "default-scheduler",
    "kthena.gang": False,
    "kthena.topologyTier": 2,
    "kthena.recovery": "RoleRecreate",
    "kthena.timeoutSeconds": 77,
    "kthena.retryAttempts": 7,
    "kthena.retryIntervalMs": 77,
    "network.enabled": False,
    **{f"network.{name}": ["192.0.2.0/24"] for name in ("clients", "apiServer", "dns", "channel", "weights", "etcd")},
    "network.monitoringNamespace": "watching",
    "network.kthenaNamespace": "routers",
    "network.kthenaRouterPort": 8081,
}
ELSEWHERE = {"kthena.await", "nodePools.nodes", "network.enforced"}
"""What no manifest shows: how long Pulumi waits (test_kthena_objects.py), patches of nodes (below), what smoke and preflight
make of it (test_relay.py, test_preflight.py)."""


def base() -> dict[str, Any]:
    """A pool of Karpenter; a model on Kthena, a native one with fetched weights, an aggregated one; a channel."""
    values = stack()
    values["nodePools"][1] |= {
        "mode": "karpenter",
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"},
        "tolerations": [{"key": "example/gpu", "value": "yes"}],
        "topologyKey": "topology.kubernetes.io/zone",
        "rdmaResource": "rdma/shared",
    }
    big, small = values["models"]
    flat = {
        "name": "flat",
        "shape": "aggregated",
        "connector": "none",
        "weights": {"source": "hostPath", "location": "/models/flat", "revision": REVISION, "size": "16Gi"},
        "serve": {"pool": "gpu", "replicas": 1, "chips": 1, "memory": "32Gi"},
    }
    other = flat | {"name": "other", "backend": "kthena"}
    values["models"] += [flat, other]
    big["route"] = {
        "weight": 90,
        "targets": [{"model": "other", "weight": 10}],
        "rateLimit": {"inputTokens": 10, "outputTokens": 10},
    }
    small["weights"] |= {
        "source": "s3",
        "location": "s3://weights/small",
        "checksums": "a" * 64,
        "endpoint": "https://s3.example",
        "credentialsSecret": "s3",
        "cache": {"limit": "80Gi"},
    }
    values["autoscaling"]["engines"] = {"enabled": True, "minReplicas": 1, "maxReplicas": 1}
    values["kvStore"]["ha"] = {"etcd": ["etcd.example:2379"]}
    values["kvStore"]["storePods"] = {"segment": "2Gi", "pool": "gpu"}
    values["network"] = values.get("network", {}) | {"etcd": ["203.0.113.0/24"]}
    values["channel"] = {"enabled": True, "key": "pays"}
    values["keys"] = {"keys": [{"id": "pays", "purpose": "fallback", "owner": "gateway"}]}
    return values


def outcome(values: dict[str, Any]) -> str:
    """Everything that is declared for a stack, or why it is refused."""
    try:
        settings = Settings.from_mapping(values)
    except SettingsError as error:
        return str(error)
    return json.dumps(list(declared(settings)), sort_keys=True, default=str)


def declared(settings: Settings) -> Iterator[Any]:
    plans = engine_plans(settings, IMAGES, None, "pre")
    for plan in plans:
        yield pd_serving.deployment(plan, CONTEXT)
    for model in settings.models:
        mine = [plan for plan in plans if plan.model is model]
        if model.backend == "kthena":
            yield model_serving(model, mine, settings.kthena, CONTEXT).manifest()
            yield model_server(model, settings.kthena, CONTEXT).manifest()
            yield model_route(model, CONTEXT).manifest()
            objects = autoscaling_objects(model, settings.autoscaling.engines, settings.kthena.release, CONTEXT)
            yield [each.manifest() for each in objects]
        else:
            yield router.deployment(model, CONTEXT)
    for protocol in store_protocols(settings):
        args = KvStoreArgs.of(settings, protocol)
        yield from (kv_store.config_map(args, CONTEXT), kv_store.deployment(args, CONTEXT))
        if (pods := kv_store.store_pods(args, "serving")) is not None:
            yield store_deployment(pods, CONTEXT)
    yield from (karpenter_pool(pool, CONTEXT) for pool in settings.node_pools if pool.mode == "karpenter")
    yield {name: images for name, (_, images) in PrePullArgs(engines=plans).images().items()}
    yield network_policies(settings)
    yield costs(settings)


def changed(values: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The values with one of them replaced or added."""
    parent: Any = values
    *folders, key = path.split(".")
    for folder in folders:
        parent = parent[int(folder)] if isinstance(parent, list) else parent.setdefault(folder, {})
    assert parent.get(key) != value, "the test changes nothing"
    parent[key] = value
    return values


def known(path: str, field: Any, definitions: dict[str, Any]) -> Iterator[str]:
    """The paths of all single settings below a field of the schema."""
    text = json.dumps({key: value for key, value in field.items() if key != "default"})
    if reference := re.search(r"#/\$defs/(\w+)", text):
        for key, each in definitions[reference[1]]["properties"].items():
            yield from known(f"{path}.{key}", each, definitions)
    else:
        yield path


@pytest.fixture(scope="module")
def before() -> str:
    found = outcome(base())
    assert "problem(s)" not in found, found
    return found


@pytest.mark.parametrize("path", CHANGES)
def test_a_changed_setting_changes_what_is_declared(path: str, before: str):
    assert outcome(changed(base(), path, CHANGES[path])) != before


def test_no_setting_is_missing_here():
    schema = Settings.model_json_schema()
    groups = ("nodePools", "models", "kvStore", "kthena", "network")
    paths = {path for group in groups for path in known(group, schema["properties"][group], schema["$defs"])}
    tested = {re.sub(r"\.\d+", "", path) for path in CHANGES} | ELSEWHERE
    assert {re.sub(r"\.(decode|serve)\.", ".prefill.", path) for path in paths - tested} - tested == set()


def test_the_named_nodes_of_a_pool_in_mode_labels_are_patched_with_its_labels():
    pool = Settings.from_mapping(stack()).node_pools[0].model_copy(update={"mode": "labels", "nodes": ("a", "b")})
    found = deploy(lambda context: NodePool("npu", pool, context))
    patches = [one.inputs["metadata"] for one in found if one.type.endswith(":NodePatch")]
    assert {patch["name"]: patch["labels"] for patch in patches} == dict.fromkeys("ab", pool.node_labels())
