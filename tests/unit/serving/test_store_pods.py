"""Pods that hold the store's memory: objects, clients, places, alerts, and what is refused."""

from typing import Any

import pytest

from components.kv_store import KvStore, KvStoreArgs, engine_store_config, store_environment, store_pods
from components.pods.engine import engine_container
from components.pods.store import store_deployment
from components.scaling.monitoring import stack_alerts
from components.serving_plan import engine_plans
from rules.quantity import to_bytes
from settings.boundary import network_policies
from settings.settings import Settings
from settings.sharing import store_protocols
from tests.unit.components.conftest import IMAGES
from tests.unit.serving.stacks import accepted, problems, refused, stack
from tests.unit.serving.test_kthena_objects import CONTEXT

RDMA = "rdma/hca_shared_devices_a"


def values(**pods: Any) -> dict[str, Any]:
    """The Ascend store is held by its engines, the one over RDMA by pods on the H100 nodes."""
    found = stack()
    found["nodePools"][1] |= {"rdmaResource": RDMA, "tolerations": [{"key": "nvidia.com/gpu"}]}
    found["kvStore"] |= {"storePods": {"pool": "gpu", "segment": "32Gi", **pods}, "device": "mlx5_0"}
    return found


def over_tcp(**pods: Any) -> dict[str, Any]:
    """The H100 model alone, over TCP, its store's pods on any node."""
    found = stack()
    del found["models"][0]
    found["kvStore"] = {"protocol": "tcp", "storePods": {"segment": "32Gi", **pods}}
    return found


def args(found: dict[str, Any], protocol: Any) -> KvStoreArgs:
    return KvStoreArgs.of(Settings.from_mapping(found), protocol)


def pod_spec(found: dict[str, Any], protocol: Any) -> dict[str, Any]:
    pods = store_pods(args(found, protocol), "serving")
    assert pods is not None
    return dict(store_deployment(pods, CONTEXT)["spec"]["template"]["spec"])


def test_a_stack_with_store_pods_declares_them_beside_the_masters_with_budgets_of_their_own(declare_stack: Any):
    settings = Settings.from_mapping(values(replicas=3))
    recorder = declare_stack(
        lambda context: [
            KvStore(f"kv-store-{protocol}", KvStoreArgs.of(settings, protocol), context)
            for protocol in store_protocols(settings)
        ]
    )
    deployments, budgets = recorder.created("Deployment"), recorder.created("PodDisruptionBudget")
    assert deployments.keys() == {"mooncake-master", "mooncake-master-rdma", "mooncake-store-rdma"}
    assert deployments["mooncake-store-rdma"]["spec"]["replicas"] == 3
    assert budgets.keys() == deployments.keys()
    selectors = [each["spec"]["selector"]["matchLabels"]["moonstack.dev/part"] for each in budgets.values()]
    assert sorted(selectors) == sorted(deployments)
    for name, inputs in deployments.items():
        assert inputs["spec"]["template"]["metadata"]["labels"]["moonstack.dev/part"] == name


def test_engines_beside_store_pods_lend_nothing_and_say_so():
    """vLLM's MooncakeStoreConfig refuses a segment of 0 bytes in its default mode, and any other size in mode standalone-store."""
    config = engine_store_config(args(values(), "rdma"), "serving")
    assert (config["mode"], config["global_segment_size"]) == ("standalone-store", 0)
    assert config["local_buffer_size"] > 0
    both = engine_store_config(args(values(engineSegments=True), "rdma"), "serving")
    assert "mode" not in both and both["global_segment_size"] == 2**30


def test_engines_hold_the_store_of_a_transport_that_needs_a_chip():
    """kvcache-ai/Mooncake#1854: host memory can't be registered in a store pod on 910B."""
    found = args(values(), "ascend")
    assert store_pods(found, "serving") is None
    assert engine_store_config(found, "serving")["global_segment_size"] == 2**30


def test_without_store_pods_the_engines_configuration_is_as_ever():
    config = engine_store_config(args(stack(), "rdma"), "serving")
    assert set(config) == {
        "metadata_server", "master_server_address", "global_segment_size", "local_buffer_size", "protocol", "device_name",
    }  # fmt: skip


def test_a_store_pod_finds_the_master_by_its_own_address_and_asks_for_a_device_and_no_chip():
    spec = pod_spec(values(), "rdma")
    container = spec["containers"][0]
    assert container["command"] == ["mooncake_client"]
    assert {
        "--host=$(POD_IP)",
        f"--global_segment_size={32 * 2**30}",
        "--master_server_address=mooncake-master-rdma.serving.svc.cluster.local:50061",
        "--metadata_server=P2PHANDSHAKE",
        "--protocol=rdma",
        "--device_names=mlx5_0",
    } <= set(container["args"])
    wanted = {"memory": "33280Mi", RDMA: "1"}
    assert container["resources"]["limits"] == wanted
    assert container["resources"]["requests"] == wanted | {"cpu": "1"}
    assert spec["nodeSelector"]["moonstack.dev/pool"] == "gpu"
    assert [each["key"] for each in spec["tolerations"]] == ["nvidia.com/gpu"]


def test_store_pods_over_tcp_run_anywhere_and_ask_for_no_device():
    spec = pod_spec(over_tcp(), "tcp")
    assert "nodeSelector" not in spec
    assert set(spec["containers"][0]["resources"]["limits"]) == {"memory"}
    assert not any(each.startswith("--device_names") for each in spec["containers"][0]["args"])


def test_a_lost_master_makes_store_pods_unready_and_restarts_none():
    container = pod_spec(over_tcp(), "tcp")["containers"][0]
    assert container["readinessProbe"]["httpGet"] == {"path": "/health", "port": "metrics"}
    for probe in ("startupProbe", "livenessProbe"):
        assert container[probe]["tcpSocket"] == {"port": "rpc"}
    startup = container["startupProbe"]
    assert startup["periodSeconds"] * startup["failureThreshold"] > 88, "so long it looks for a master"


def test_a_rollout_of_store_pods_takes_one_after_the_other_and_needs_no_further_memory():
    pods = store_pods(args(over_tcp(), "tcp"), "serving")
    assert pods is not None
    rolling = store_deployment(pods, CONTEXT)["spec"]["strategy"]["rollingUpdate"]
    assert rolling == {"maxSurge": 0, "maxUnavailable": 1}


def test_store_pods_look_an_elected_master_up_under_the_name_that_masters_elect_under():
    found = over_tcp()
    found["kvStore"]["ha"] = {"etcd": ["etcd.example:2379"]}
    found["network"] = {"etcd": ["10.0.0.0/24"]}
    container = pod_spec(found, "tcp")["containers"][0]
    assert "--master_server_address=etcd://etcd.example:2379" in container["args"]
    variables = {each["name"]: each.get("value") for each in container["env"]}
    assert store_environment(args(found, "tcp"), "serving").items() <= variables.items()


def test_the_boundary_opens_the_store_pods_to_engines_and_prometheus_as_it_does_the_masters():
    labels = store_deployment(store_pods(args(over_tcp(), "tcp"), "serving"), CONTEXT)["spec"]["template"]["metadata"][  # pyright: ignore[reportArgumentType]
        "labels"
    ]
    selector = network_policies(Settings.from_mapping(over_tcp()))["allow-kv-store"]["podSelector"]["matchLabels"]
    assert selector.items() <= labels.items()
    metrics = next(p for p in pod_spec(over_tcp(), "tcp")["containers"][0]["ports"] if p["name"] == "metrics")
    assert metrics["containerPort"] == 9003


def test_engines_on_a_pool_with_rdma_ask_for_one_device_each():
    plans = engine_plans(Settings.from_mapping(values()), IMAGES, None, "pre")
    found = {plan.pool.name: engine_container(plan.pod)["resources"] for plan in plans}
    assert found["gpu"]["limits"][RDMA] == found["gpu"]["requests"][RDMA] == "1"
    assert RDMA not in found["npu"]["limits"]


def test_only_clients_of_a_store_are_counted_by_its_alert():
    def query(found: dict[str, Any]) -> str:
        alerts = stack_alerts(Settings.from_mapping(found))
        return next((each.query for each in alerts if each.name == "StoreClientsMissing"), "")

    assert 'model_name=~"small"' in query(over_tcp()) and query(over_tcp()).endswith(" + 2")
    assert 'model_name=~"big|small"' in query(stack()) and query(stack()).endswith("}))")
    alone = stack()
    alone["kvStore"]["enabled"] = False
    assert query(alone) == ""


PLACE = "kvStore.storePods"
REFUSED: dict[str, tuple[Any, str, tuple[str, ...]]] = {
    "memory below segment and process": (
        lambda: values(memory="32Gi"), f"{PLACE}.memory", ("segment 32Gi", "at least 33280Mi"),
    ),
    "no segment": (lambda: over_tcp(segment="0"), f"{PLACE}.segment", ("at least 1Mi",)),
    "unknown pool": (lambda: values(pool="elsewhere"), f"{PLACE}.pool", ("elsewhere", "gpu")),
    "more than a node": (lambda: values(segment="100Gi"), f"{PLACE}.memory", ("64Gi", "gpu")),
    "more CPU than a node": (lambda: values(cpu="9"), f"{PLACE}.cpu", ("'9'", "(8)")),
    "more than the pool": (lambda: values(replicas=7), f"{PLACE}.pool", ("228Gi", "64Gi", "256Gi")),
    "no node with RDMA": (lambda: values(pool=None), f"{PLACE}.pool", ("over RDMA",)),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_store_pods_without_a_place_are_refused(name: str):
    make, path, words = REFUSED[name]
    assert refused(make(), path, *words)


def test_a_segment_with_the_process_that_just_fits_is_accepted():
    assert accepted(values(memory="33280Mi"))
    assert accepted(values(replicas=5))


def test_store_pods_need_the_rdma_devices_of_their_pool():
    found = values()
    del found["nodePools"][1]["rdmaResource"]
    assert refused(found, f"{PLACE}.pool", "rdmaResource")


def test_store_pods_that_no_store_can_have_are_refused_and_not_ignored():
    found = stack()
    del found["models"][1]
    found["kvStore"]["storePods"] = {"segment": "32Gi"}
    assert refused(found, PLACE, "kvcache-ai/Mooncake#1854")
    off = over_tcp()
    off["kvStore"]["enabled"] = False
    assert refused(off, PLACE, "kvStore.enabled is false")
    alone = over_tcp()
    alone["models"][0] |= {"shape": "aggregated", "connector": "none", "serve": alone["models"][0].pop("prefill")}
    del alone["models"][0]["decode"]
    assert refused(alone, PLACE, "no engine of the stack joins a store")


def test_an_engine_needs_no_memory_for_a_segment_that_store_pods_hold():
    found = over_tcp()
    found["kvStore"]["segment"] = "64Gi"
    assert accepted(found)
    found["kvStore"]["storePods"]["engineSegments"] = True
    lines = problems(found)
    assert len(lines) == 2 and all("segment 64Gi" in line for line in lines)


@pytest.mark.parametrize("name", ["segment", "buffer"])
def test_a_segment_or_a_buffer_of_no_size_is_refused_as_the_engine_would(name: str):
    found = stack()
    del found["models"][0]
    found["kvStore"] = {name: "0"}
    assert refused(found, f"kvStore.{name}", "at least 1Mi")


def test_the_default_memory_limit_holds_segment_and_process():
    pods = Settings.from_mapping(over_tcp(segment="10.3Gi")).kv_store.store_pods
    assert pods is not None
    assert to_bytes(pods.memory_limit) >= to_bytes("10.3Gi") + 512 * 2**20
