"""Preflight: each thing that a cluster may lack is named with its fix, and a complete cluster has no finding."""

import copy
from dataclasses import replace
from typing import Any, cast

import pytest

from rules import kthena
from settings.settings import Settings
from smoke.cluster import Cluster, Reply
from smoke.preflight.checks import judge
from smoke.preflight.checks.placing import ways
from smoke.preflight.gather import _Reader
from smoke.preflight.inventory import Inventory
from tests.unit.serving.stacks import stack


def settings() -> Settings:
    values = stack()
    values["nodePools"] = values["nodePools"][:2]
    values["nodePools"][0]["count"] = 2
    values["nodePools"][1]["count"] = 1
    values["gateway"] = {"tls": {"source": "secret", "secretName": "gateway-tls"}}
    return Settings.from_mapping(values)


def node(pool: int, index: int) -> dict[str, Any]:
    found = settings().node_pools[pool]
    resource, label = (
        ("huawei.com/Ascend910", {"accelerator": "huawei-Ascend910"})
        if pool == 0
        else ("nvidia.com/gpu", {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"})
    )
    return {
        "metadata": {"name": f"{found.name}-{index}", "labels": found.node_selector() | label},
        "spec": {},
        "status": {"allocatable": {resource: "8"}},
    }


def scheduler_pod(**status: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "volcano-scheduler-0",
            "namespace": "volcano-system",
            "labels": {"app": "volcano-scheduler"},
        },
        "spec": {"containers": []},
        "status": {"conditions": [{"type": "Ready", "status": "True"} | status]},
    }


def complete() -> Inventory:
    kinds = {kthena.WORKLOAD: set(), kthena.NETWORKING: set(), "scheduling.volcano.sh/v1beta1": {"PodGroup"}}
    for kind, group in kthena.KINDS["0.4"].items():
        kinds[group].add(kind)
    return Inventory(
        version="v1.33.4",
        kinds={group: frozenset(found) for group, found in kinds.items()},
        namespace={"metadata": {"name": "serving", "labels": {}}},
        nodes=(node(0, 0), node(0, 1), node(1, 0)),
        pods=(scheduler_pod(),),
        claims=({"metadata": {"name": "models"}, "status": {"phase": "Bound"}},),
        secrets=frozenset({"gateway-tls"}),
        services=frozenset({"kthena-system/kthena-router"}),
        network_agents=frozenset({"calico-node"}),
    )


def found(inventory: Inventory, configured: Settings | None = None) -> list[tuple[str, str]]:
    return [(each.id, each.object) for each in judge(configured or settings(), inventory)]


def changed_node(**changes: Any) -> Inventory:
    inventory = complete()
    first = copy.deepcopy(inventory.nodes[0])
    for part, value in changes.items():
        first[part] = {**first[part], **value}
    return replace(inventory, nodes=(first, *inventory.nodes[1:]))


def test_a_complete_cluster_has_no_finding():
    assert found(complete()) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"version": "v1.29.9"}, ("version", "cluster")),
        ({"denied": ("create secrets",)}, ("rights", "serving")),
        ({"network_agents": frozenset()}, ("networkPolicies", "cluster")),
        ({"claims": ()}, ("claim", "persistentvolumeclaim/models")),
        ({"secrets": frozenset()}, ("secret", "secret/gateway-tls")),
        ({"services": frozenset()}, ("kthenaRouter", "gateway.kthenaRouter")),
        ({"webhooks_down": ("service/kthena-system/webhook",)}, ("kthenaWebhook", "service/kthena-system/webhook")),
        ({"blind": ("nodes",)}, ("blind", "nodes")),
        (
            {"quotas": ({"metadata": {"name": "q"}, "spec": {"hard": {"requests.huawei.com/Ascend910": "11"}}},)},
            ("quota", "resourcequota/q"),
        ),
        (
            {"model_routes": ({"metadata": {"name": "r", "namespace": "other"}, "spec": {"modelName": "big"}},)},
            ("modelName", "modelroute/other/r"),
        ),
        (
            {
                "namespace": {
                    "metadata": {"name": "serving", "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}
                }
            },
            ("podSecurity", "namespace/serving"),
        ),
    ],
)
def test_what_is_missing_is_named(change: dict[str, Any], expected: tuple[str, str]):
    assert found(replace(complete(), **change)) == [expected]


def test_a_pool_without_nodes_and_one_with_too_few_differ():
    inventory = complete()
    none = judge(settings(), replace(inventory, nodes=inventory.nodes[2:]))
    assert [(each.id, each.severity, each.object) for each in none] == [("pool", "error", "pool/npu")]
    assert "kubectl get nodes -l" in none[0].fix
    few = judge(settings(), replace(inventory, nodes=inventory.nodes[1:]))
    assert [(each.id, each.severity) for each in few] == [("pool", "warning")]


def test_a_node_without_the_device_plugins_label_is_reported_with_the_command_that_shows_it():
    inventory = changed_node(metadata={"labels": settings().node_pools[0].node_selector()})
    (one,) = judge(settings(), inventory)
    assert (one.id, one.object) == ("driver", "node/npu-0")
    assert "kubectl get nodes -L accelerator" in one.fix


def test_a_node_that_offers_fewer_chips_is_reported():
    assert found(changed_node(status={"allocatable": {"huawei.com/Ascend910": "4"}})) == [("chips", "node/npu-0")]


def test_a_taint_that_pods_do_not_tolerate_is_reported():
    taint = {"key": "example.com/reserved", "effect": "NoSchedule"}
    assert found(changed_node(spec={"taints": [taint]})) == [("taint", "node/npu-0")]


def test_a_node_of_another_architecture_is_reported():
    labels = node(0, 0)["metadata"]["labels"] | {"kubernetes.io/arch": "amd64"}
    assert found(changed_node(metadata={"labels": labels})) == [("arch", "node/npu-0")]


def test_chips_that_others_hold_are_counted():
    pod = {
        "metadata": {"name": "other", "labels": {}},
        "spec": {
            "nodeName": "npu-0",
            "containers": [{"resources": {"requests": {"huawei.com/Ascend910": "8"}}}],
        },
    }
    assert found(replace(complete(), pods=(*complete().pods, pod))) == [("chipsTaken", "pool/npu")]
    pod["metadata"]["labels"] = {"app.kubernetes.io/part-of": "moonstack"}
    assert found(replace(complete(), pods=(*complete().pods, pod))) == []


def test_a_cluster_of_the_other_kthena_release_is_noticed():
    values = stack()
    values["nodePools"][0]["count"], values["nodePools"] = 2, values["nodePools"][:2]
    values["nodePools"][1]["count"] = 1
    values["kthena"] = {"release": "1.0"}
    assert found(complete(), Settings.from_mapping(values))[0] == ("kthena", "cluster")
    without = replace(complete(), kinds={"scheduling.volcano.sh/v1beta1": frozenset({"PodGroup"})})
    assert {id for id, _ in found(without)} == {"kthena"}


def test_volcano_is_missed_only_where_pods_name_it():
    inventory = complete()
    kinds = {group: each for group, each in inventory.kinds.items() if "volcano.sh/v1beta1" not in group}
    assert found(replace(inventory, kinds=kinds)) == [("volcano", "cluster")]
    values = stack()
    values["kthena"] = {"scheduler": "default-scheduler", "gang": False}
    bare = replace(inventory, kinds=kinds, pods=())
    assert not {"volcano", "volcanoScheduler"} & {id for id, _ in found(bare, Settings.from_mapping(values))}


@pytest.mark.parametrize("pods", [(), (scheduler_pod(status="False"),)])
def test_volcanos_api_without_its_scheduler_is_said(pods: tuple[dict[str, Any], ...]):
    """The API stays served when the scheduler has gone: with nothing to place them, pods are Pending without an event."""
    alone = replace(complete(), pods=pods)
    assert found(alone) == [("volcanoScheduler", "cluster")]
    assert "volcanoScheduler" not in {id for id, _ in found(replace(alone, blind=("pods",)))}


def test_gangs_that_volcano_counts_without_their_roles_are_said():
    """Volcano before 1.14: a PodGroup of two pods is whole with two prefill engines."""
    old = replace(complete(), counts_roles=False)
    assert found(old) == [("volcanoRoles", "kthena.gang")]
    assert "as many pods as" in ways(settings(), old)["big"]
    assert found(replace(old, counts_roles=True)) == found(replace(old, counts_roles=None)) == []
    values = stack()
    values["kthena"] = {"gang": False}
    assert "volcanoRoles" not in {id for id, _ in found(old, Settings.from_mapping(values))}


class Schemas:
    """A cluster of which only the published schema of Volcano's API is asked."""

    def __init__(self, status: int, text: str) -> None:
        self.reply = Reply(status, text)

    async def call(self, method: str, path: str) -> Reply:
        assert (method, path) == ("GET", "/openapi/v3/apis/scheduling.volcano.sh/v1beta1")
        return self.reply


@pytest.mark.parametrize(
    ("status", "text", "counted"),
    [(200, '{"minMember": {}, "minSubGroups": {}}', True), (200, '{"minMember": {}}', False), (404, "", None)],
)
async def test_what_volcano_counts_is_read_from_its_published_schema(status: int, text: str, counted: bool | None):
    reader = _Reader(settings(), cast(Cluster, Schemas(status, text)))
    assert await reader._counts_roles() is counted


@pytest.mark.parametrize(
    ("tiers", "severity", "says"),
    [
        ((), "warning", "the cluster has no HyperNode"),
        ((1,), "warning", "whole cluster"),
        ((1, 2), None, ""),
        ((2, 3), None, ""),
        ((1, 2, 3), None, ""),
        ((3, 4), "error", "would stay Pending"),
    ],
)
def test_a_tier_that_keeps_nothing_together_or_lets_nothing_start_is_said(
    tiers: tuple[int, ...], severity: str | None, says: str
):
    """Volcano's root stands a tier above the highest HyperNode: where the tier allows it, a group may span the cluster."""
    values = stack()
    values["nodePools"] = values["nodePools"][:2]
    values["kthena"] = {"topologyTier": 2}
    configured = Settings.from_mapping(values)
    hyper_nodes = tuple({"metadata": {"name": f"s{tier}"}, "spec": {"tier": tier}} for tier in tiers)
    judged = [
        each
        for each in judge(configured, replace(complete(), hyper_nodes=hyper_nodes))
        if each.object == "kthena.topologyTier"
    ]
    assert [each.severity for each in judged] == ([severity] if severity else [])
    assert all(says in each.cause for each in judged)
    unseen = replace(complete(), hyper_nodes=hyper_nodes, blind=("HyperNodes",))
    assert "topologyTier" not in {id for id, _ in found(unseen, configured)}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, "a gang by Volcano: one engine of each role or none"),
        ({"topologyTier": 2}, "within HyperNodes of tier 2"),
        ({"gang": False}, "each engine for itself by Volcano"),
        ({"gang": False, "scheduler": "default-scheduler"}, "each engine for itself by the default scheduler"),
    ],
)
def test_preflight_says_how_each_models_engines_are_placed(changes: dict[str, Any], says: str):
    values = stack()
    values["kthena"] = changes
    values["nodePools"][1]["topologyKey"] = "topology.kubernetes.io/zone"
    configured = Settings.from_mapping(values)
    placed = ways(configured, complete())
    assert says in placed["big"]
    assert placed["small"] == (
        "each engine for itself by the default scheduler, near its group by topology.kubernetes.io/zone where it can"
    )
    if configured.kthena.scheduler == "volcano":
        assert ways(configured, replace(complete(), kinds={}))["big"] == "by nobody: Volcano isn't there"


@pytest.mark.parametrize(
    ("changes", "severity"), [({}, "error"), ({"enforced": False}, "warning"), ({"enabled": False}, "warning")]
)
def test_missing_network_enforcement_is_an_error_where_the_stack_counts_on_it(changes: dict[str, bool], severity: str):
    configured = settings()
    configured = configured.model_copy(update={"network": configured.network.model_copy(update=changes)})
    (one,) = judge(configured, replace(complete(), network_agents=frozenset()))
    assert one.severity == severity


def test_another_metrics_adapter_is_an_error_where_ours_would_be():
    service = {
        "metadata": {"name": "v1beta1.custom.metrics.k8s.io", "labels": {}},
        "spec": {"group": "custom.metrics.k8s.io"},
    }
    inventory = replace(complete(), api_services=(service,))
    assert found(inventory) == []
    scaled = settings()
    engines = scaled.autoscaling.engines.model_copy(update={"enabled": True})
    scaled = scaled.model_copy(update={"autoscaling": scaled.autoscaling.model_copy(update={"engines": engines})})
    assert found(inventory, scaled) == [("customMetrics", "apiservice/v1beta1.custom.metrics.k8s.io")]


def test_a_placeholder_checksum_of_weights_is_an_error_before_a_pod_waits_for_it():
    def of(checksums: str) -> list[tuple[str, str]]:
        values = stack()
        values["nodePools"] = values["nodePools"][:2]
        values["nodePools"][0]["count"], values["nodePools"][1]["count"] = 2, 1
        values["gateway"] = {"tls": {"source": "secret", "secretName": "gateway-tls"}}
        weights = {"source": "s3", "location": "s3://bucket/big", "checksums": checksums}
        values["models"][0]["weights"] |= weights
        return found(complete(), Settings.from_mapping(values))

    assert of("0" * 64) == [("checksums", "models[0].weights.checksums")]
    assert of("a" * 64) == []


def test_a_stack_for_kthena_0_4_is_refused_before_a_cluster_of_1_0_would():
    """1.0 refuses exactly the binding (its definitions, test_kthena_objects.py); preflight names it while nothing is applied."""
    kinds = complete().kinds
    served = {**kinds, kthena.WORKLOAD: frozenset(kthena.KINDS["1.0"]) & kinds[kthena.WORKLOAD]}
    errors = [each for each in judge(settings(), replace(complete(), kinds=served)) if each.severity == "error"]
    assert [(each.id, each.object) for each in errors] == [("kthena", "AutoscalingPolicyBinding")]
    assert "0.4" in errors[0].cause


def with_store_pods(memory: str, *others: dict[str, Any]) -> list[tuple[str, str]]:
    """Findings with two store pods of 8.5Gi on the H100 node, which has so much memory and an RDMA device."""
    configured = settings()
    values = stack()
    values["nodePools"] = [each.model_dump(mode="json", by_alias=True) for each in configured.node_pools]
    values["nodePools"][1] |= {"rdmaResource": "rdma/shared", "memory": "128Gi"}
    values["gateway"] = {"tls": {"source": "secret", "secretName": "gateway-tls"}}
    values["kvStore"]["storePods"] = {"segment": "8Gi", "pool": "gpu"}
    inventory = complete()
    gpu = copy.deepcopy(inventory.nodes[2])
    gpu["status"]["allocatable"] |= {"memory": memory, "rdma/shared": "8"}
    return found(
        replace(inventory, nodes=(*inventory.nodes[:2], gpu), pods=(*inventory.pods, *others)),
        Settings.from_mapping(values),
    )


def holding(memory: str, **labels: str) -> dict[str, Any]:
    requests = {"requests": {"memory": memory}}
    spec = {"nodeName": "gpu-0", "containers": [{"resources": requests}]}
    return {"metadata": {"name": "other", "labels": labels}, "spec": spec}


def test_store_pods_that_find_no_memory_beside_the_pods_of_others_are_reported():
    assert with_store_pods("17Gi") == []
    assert with_store_pods("16Gi") == [("storePods", "pool/gpu")]
    assert with_store_pods("17Gi", holding("1Gi")) == [("storePods", "pool/gpu")]
    own = {"app.kubernetes.io/part-of": "moonstack"}
    assert with_store_pods("17Gi", holding("1Gi", **own)) == [], "the stack's own pods are to be replaced"


def test_a_node_without_the_rdma_devices_that_its_pool_names_is_reported():
    values = settings().node_pools[1].model_copy(update={"rdma_resource": "rdma/shared"})
    configured = settings().model_copy(update={"node_pools": (settings().node_pools[0], values)})
    assert found(complete(), configured) == [("rdma", "node/gpu-0")]


@pytest.mark.parametrize("missing", ["HTTPRoute", "BackendTLSPolicy"])
def test_a_gateway_api_without_a_kind_that_the_route_needs_is_named(missing: str):
    gateway = settings().gateway.model_copy(update={"exposure": "gatewayApi"})
    by_route = settings().model_copy(update={"gateway": gateway})
    served = {"Gateway", "HTTPRoute", "BackendTLSPolicy"}
    group = "gateway.networking.k8s.io/v1"
    older = replace(complete(), kinds={**complete().kinds, group: frozenset(served - {missing})})
    assert found(older, by_route) == [("operator", missing)]
    assert found(replace(older, kinds={**older.kinds, group: frozenset(served)}), by_route) == []
