"""Backend native: pools, topology, priorities, image pre-pull, aggregated models, and stores of several transports."""

import json
from typing import Any

from components.kv_store import KvStore, KvStoreArgs
from components.node_pool import NodePool, karpenter_pool
from components.pods.engine import engine_spec
from components.pre_pull import PrePull, PrePullArgs
from components.priorities import VALUES, Priorities
from components.router import router_arguments
from components.serving_plan import EnginePlan, engine_plans, pod_security_level
from rules.engine import arguments, environment
from settings.settings import Settings
from settings.sharing import store_protocols
from tests.unit.components.conftest import IMAGES
from tests.unit.serving.stacks import REVISION, refused, stack
from tests.unit.serving.test_kthena_objects import CONTEXT


def plans(values: dict[str, Any]) -> list[EnginePlan]:
    return engine_plans(Settings.from_mapping(values), IMAGES, None, "pre")


def transfer(plan: EnginePlan) -> dict[str, Any]:
    args = arguments(plan.pod.launch)
    return json.loads(args[args.index("--kv-transfer-config") + 1])


def variables(plan: EnginePlan) -> dict[str, str]:
    found = environment(plan.pod.launch, plan.pod.chip.environment, plan.pod.chip.pod_ip_variables)
    return {each["name"]: each.get("value", "") for each in found}


def mixed() -> dict[str, Any]:
    """Model `small` on two pools: prefill on H100, decode on H100 and A100."""
    values = stack()
    values["nodePools"].append(
        {
            "name": "a100",
            "chip": "nvidia-a100",
            "driverStack": "gpu-operator",
            "arch": "amd64",
            "count": 2,
            "chipsPerNode": 8,
        }
    )
    decode = values["models"][1]["decode"]
    values["models"][1]["decode"] = [decode, decode | {"pool": "a100"}]
    return values


def test_one_role_on_two_pools_is_two_deployments_that_one_router_selects():
    prefill, h100, a100 = [plan for plan in plans(mixed()) if plan.model.name == "small"]
    assert len({prefill.name, h100.name, a100.name}) == 3
    assert h100.selector != a100.selector
    args = router_arguments(h100.model, "serving")
    wanted = dict(each.split("=") for each in args[args.index("--decode-selector") + 1 :][:3])
    assert wanted.items() <= h100.labels.items() and wanted.items() <= a100.labels.items()
    assert not wanted.items() <= prefill.labels.items()


def test_every_pod_pins_its_pool_chip_and_architecture():
    for plan in plans(mixed()):
        selector = engine_spec(plan.pod)["nodeSelector"]
        assert selector["kubernetes.io/arch"] == plan.pool.arch
        assert selector["moonstack.dev/chip"] == plan.pool.chip
        assert selector["moonstack.dev/pool"] == plan.pool.name


def test_a_group_prefers_one_domain_and_never_requires_it():
    values = stack()
    values["nodePools"][1]["topologyKey"] = "example.com/rack"
    plan = next(plan for plan in plans(values) if plan.pool.name == "gpu")
    affinity = engine_spec(plan.pod)["affinity"]["podAffinity"]
    term = affinity["preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"]
    assert term["topologyKey"] == "example.com/rack"
    assert "requiredDuringSchedulingIgnoredDuringExecution" not in affinity


def test_priority_names_a_class_that_the_stack_declares_for_itself(declare_stack: Any):
    values = stack()
    values["models"][1]["priority"] = "high"
    values["cluster"] = {**values.get("cluster", {}), "namespace": "moonstack-dev"}
    named = {engine_spec(plan.pod)["priorityClassName"] for plan in plans(values)}
    assert named == {"moonstack-dev-high", "moonstack-dev-normal"}
    declared = declare_stack(lambda context: Priorities("priorities", context)).created("PriorityClass")
    assert named <= declared.keys()
    assert VALUES["low"] < VALUES["normal"] < VALUES["high"]


def test_images_are_pulled_ahead_on_pools_of_models_that_ask_for_it(declare_stack: Any):
    values = stack()
    values["models"][0]["prePull"] = True
    daemons = declare_stack(lambda context: PrePull("pre-pull", PrePullArgs(engines=plans(values)), context))
    made = daemons.created("DaemonSet")
    assert made.keys() == {"pre-pull-npu"}
    pod = made["pre-pull-npu"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"] == IMAGES["engine-ascend"]
    assert pod["nodeSelector"]["moonstack.dev/pool"] == "npu"


def test_nvidia_pods_with_fetched_weights_keep_the_restricted_level_and_ascend_pods_do_not():
    values = stack()
    ascend = [plan for plan in plans(values) if plan.pool.name == "npu"]
    values["models"][1]["weights"] = {"source": "pvc", "location": "claim", "revision": REVISION, "size": "16Gi"}
    nvidia = [plan for plan in plans(values) if plan.pool.name == "gpu"]
    assert pod_security_level(nvidia) == "restricted"
    assert pod_security_level(ascend) == "privileged"


def test_nixl_and_mooncake_take_the_pods_address_never_a_fixed_one():
    """volcano-sh/kthena#503: a side channel on 0.0.0.0 makes decode dial itself; kvcache-ai/Mooncake#863: localhost."""
    plan = next(plan for plan in plans(stack()) if plan.model.name == "small")
    found = variables(plan)
    for name in ("VLLM_NIXL_SIDE_CHANNEL_HOST", "VLLM_HOST_IP", "MOONCAKE_REQUESTER_LOCAL_HOSTNAME"):
        assert found[name] == "$(POD_IP)"
    assert not {"0.0.0.0", "localhost", "127.0.0.1"} & set(found.values())


def test_ascend_pods_have_hccls_address_and_the_hosts_network_configuration():
    """vllm-project/vllm-ascend#7711: without /etc/hccn.conf pods turn Ready and answer garbage."""
    plan = next(plan for plan in plans(stack()) if plan.pool.name == "npu")
    assert variables(plan)["HCCL_IF_IP"] == "$(POD_IP)"
    spec = engine_spec(plan.pod)
    mounted = {each["mountPath"] for each in spec["containers"][0]["volumeMounts"]}
    assert "/etc/hccn.conf" in mounted
    source = next(each for each in spec["volumes"] if each.get("hostPath", {}).get("path") == "/etc/hccn.conf")
    assert source["hostPath"]["type"] == "File"


def test_a_peer_to_peer_connector_runs_beside_the_store():
    """vllm-ascend, KV pool guide: MultiConnector of MooncakeConnectorV1 and AscendStoreConnector."""
    prefill, decode = [plan for plan in plans(stack()) if plan.model.name == "big"]
    inner = transfer(prefill)["kv_connector_extra_config"]["connectors"]
    assert [each["kv_connector"] for each in inner] == ["MooncakeConnectorV1", "AscendStoreConnector"]
    assert transfer(prefill)["kv_load_failure_policy"] == "recompute"
    sizes = {"prefill": {"dp_size": 1, "tp_size": 8}, "decode": {"dp_size": 1, "tp_size": 4}}
    assert inner[0]["kv_connector_extra_config"] == sizes
    other = transfer(decode)["kv_connector_extra_config"]["connectors"]
    assert other[0]["kv_connector_extra_config"] == sizes, "both sides are told the same sizes"
    assert "engine_id" not in json.dumps([transfer(prefill), transfer(decode)])


def test_the_handshake_port_is_the_settings_or_one_above_the_transports_range():
    values = stack()
    first = transfer(plans(values)[0])["kv_connector_extra_config"]["connectors"][0]
    assert first["kv_port"] == "28000"
    values["models"][0]["kvPort"] = 29_000
    assert transfer(plans(values)[0])["kv_connector_extra_config"]["connectors"][0]["kv_port"] == "29000"


def test_on_ascend_the_kv_identity_is_in_the_path_as_its_store_keys_know_no_data_type():
    values = stack()
    before = plans(values)[0].pod.launch.path
    values["models"][0]["engine"] = {"dtype": "float16"}
    assert plans(values)[0].pod.launch.path != before


def test_each_transport_has_a_master_of_its_own(declare_stack: Any):
    settings = Settings.from_mapping(stack())
    assert store_protocols(settings) == ("ascend", "rdma")

    def stores(context: Any) -> None:
        for protocol in store_protocols(settings):
            KvStore(f"kv-store-{protocol}", KvStoreArgs(settings=settings.kv_store, protocol=protocol), context)

    recorder = declare_stack(stores)
    configs = {
        name: json.loads(inputs["data"]["mooncake.json"]) for name, inputs in recorder.created("ConfigMap").items()
    }
    assert {name: config["protocol"] for name, config in configs.items()} == {
        "mooncake-master": "ascend",
        "mooncake-master-rdma": "rdma",
    }
    used = {plan.pool.name: plan.pod.store for plan in plans(stack())}
    assert used == {"npu": "mooncake-master", "gpu": "mooncake-master-rdma"}
    for name, config in configs.items():
        assert config["master_server_address"].startswith(f"{name}.")


def test_an_aggregated_model_has_one_role_and_its_router_one_selector():
    values = stack()
    small = values["models"][1]
    small |= {"shape": "aggregated", "connector": "mooncake-store", "serve": small.pop("prefill")}
    del small["decode"]
    plan = next(plan for plan in plans(values) if plan.model.name == "small")
    assert plan.role == "serve"
    assert transfer(plan)["kv_role"] == "kv_both"
    args = router_arguments(plan.model, "serving")
    assert "--selector" in args and "--vllm-pd-disaggregation" not in args


def test_a_karpenter_pool_makes_nodes_of_the_pools_shape_and_no_more_than_its_count(declare_stack: Any):
    values = stack()
    pool = values["nodePools"][1] | {
        "mode": "karpenter",
        "tolerations": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}],
    }
    values["nodePools"][1] = pool
    assert refused(values, "nodePools[1].nodeClassRef", "needs its node class")
    pool["nodeClassRef"] = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"}
    settings = Settings.from_mapping(values)
    spec = karpenter_pool(settings.node_pools[1], CONTEXT)["spec"]
    assert spec["limits"] == {"nvidia.com/gpu": "32"}
    assert spec["template"]["metadata"]["labels"] == settings.node_pools[1].node_labels()
    assert spec["template"]["spec"]["taints"] == [{"key": "nvidia.com/gpu", "value": "", "effect": "NoSchedule"}]
    made = declare_stack(lambda context: NodePool("gpu", settings.node_pools[1], context))
    assert made.created("NodePool").keys() >= {"moonstack-gpu"}
