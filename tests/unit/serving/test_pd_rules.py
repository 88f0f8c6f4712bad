"""Each wrong pair of chips, connectors, routers and sizes is refused with its reason; its right neighbour is accepted.

The name of each test's report says where the rule comes from.
"""

from typing import Any

import pytest

from rules.chips import CHIPS
from rules.connectors import CONNECTORS
from settings.settings import Settings
from tests.unit.serving.stacks import accepted, problems, refused, stack


def model(values: dict[str, Any], index: int, **changes: Any) -> dict[str, Any]:
    values["models"][index] |= changes
    return values


def test_the_stack_itself_is_valid():
    assert accepted(stack())


@pytest.mark.parametrize("backend", ["native", "kthena"])
def test_mooncake_connector_is_refused_as_the_routers_lack_its_dialogue(backend: str):
    """vllm-project/vllm#31034, kvcache-ai/Mooncake#4071: decode would recompute in silence."""
    reason = "transfer_id" if backend == "kthena" else "bootstrap ports"
    assert refused(model(stack(), 1, connector="mooncake", backend=backend), "models[1].connector", reason)
    assert accepted(model(stack(), 1, connector="nixl", backend=backend))


@pytest.mark.parametrize("backend", ["native", "kthena"])
def test_layerwise_is_refused_behind_routers_without_a_metaserver(backend: str):
    """vllm-project/vllm-ascend, examples/disaggregated_prefill_v1: it needs /v1/metaserver."""
    assert refused(model(stack(), 0, connector="layerwise", backend=backend), "models[0].connector", "/v1/metaserver")
    right = "mooncake-v1" if backend == "kthena" else "ascend-store"
    assert accepted(model(stack(), 0, connector=right, backend=backend))


def test_a_connector_that_compares_no_models_is_refused_where_revisions_mix():
    """vllm-project/vllm-ascend, kv_p2p/mooncake_connector.py: its metadata holds no model; NIXL's handshake does."""
    assert refused(model(stack(), 0, connector="mooncake-v1", backend="native"), "models[0].connector", "one revision")
    assert accepted(model(stack(), 0, connector="mooncake-v1", backend="kthena"))
    assert accepted(model(stack(), 1, connector="nixl", backend="native"))


def test_prefill_and_decode_without_a_connector_are_refused():
    """volcano-sh/kthena, PD guide: answers look right and no KV moves."""
    assert refused(model(stack(), 1, connector="none"), "models[1].connector", "every prompt twice")
    aggregated = stack()
    small = aggregated["models"][1]
    small |= {"shape": "aggregated", "connector": "none", "serve": small.pop("prefill")}
    del small["decode"]
    assert accepted(aggregated)


def test_an_aggregated_model_takes_no_peer_to_peer_connector():
    """vllm-project/vllm, docs/features/nixl_connector_usage.md: the connector waits for a prefill peer."""
    values = stack()
    small = values["models"][1]
    small |= {"shape": "aggregated", "serve": small.pop("prefill")}
    del small["decode"]
    assert refused(values, "models[1].connector", "no prefill pods")
    small["connector"] = "mooncake-store"
    assert accepted(values)


def test_a_chip_runs_only_connectors_that_its_engine_has():
    """vllm-project/vllm-ascend, kv_transfer/__init__.py: NixlConnector isn't registered there."""
    assert refused(model(stack(), 0, connector="nixl"), "models[0].connector", "no such connector", "mooncake-v1")
    assert accepted(model(stack(), 0, connector="ascend-store"))


def test_no_group_spans_two_vendors():
    """vllm-project/vllm-ascend#16353: no connector moves KV between Ascend and NVIDIA."""
    values = stack()
    values["models"][1]["decode"]["pool"] = "npu"
    found = problems(values)
    assert any("models[1].decode[0].pool" in line and "one vendor" in line for line in found)


def test_no_group_runs_on_mig_slices():
    """NVIDIA/k8s-device-plugin, MIG: slices have no peer-to-peer transfers."""
    values = stack()
    values["models"][1]["decode"]["pool"] = "mig"
    assert refused(values, "models[1].decode[0].pool", "MIG slices")
    values["models"][1]["decode"]["pool"] = "gpu"
    assert accepted(values)


def test_prefill_parallel_size_is_a_multiple_of_decodes():
    """vllm-project/vllm-ascend, kv_p2p/mooncake_connector.py: each decode rank maps to whole prefill ranks."""
    values = stack()
    values["models"][0]["prefill"]["chips"] = 4
    values["models"][0]["decode"]["chips"] = 8
    assert refused(values, "models[0].prefill[0].chips", "must be a multiple of decode's")
    values["models"][0]["connector"] = "ascend-store"
    assert accepted(values)


def test_a_pod_asks_for_exactly_the_chips_its_engine_uses():
    """volcano-sh/kthena, examples/model-serving/prefill-decode-disaggregation.yaml: asks for 4 NPUs, uses 2."""
    values = stack()
    values["models"][1]["prefill"] |= {"chips": 4, "tensorParallel": 2}
    assert refused(values, "models[1].prefill[0].tensorParallel", "1 × 4 = 4 chips")
    values["models"][1]["prefill"]["tensorParallel"] = 4
    assert accepted(values)


def test_a_pod_takes_a_number_of_chips_that_are_connected():
    """MindCluster whole-card scheduling: 1, 2, 4 or 8 a pod."""
    values = stack()
    values["models"][1]["prefill"]["chips"] = 3
    assert refused(values, "models[1].prefill[0].chips", "1, 2, 4, 8")


def test_weights_leave_room_on_the_chips():
    """vllm-project/vllm: an engine whose weights fill the memory has no KV cache and doesn't start."""
    values = stack()
    values["models"][0]["weights"]["size"] = "240Gi"
    assert refused(values, "models[0].decode[0].chips", "don't fit 90 % of 256Gi")
    values["models"][0]["decode"]["chips"] = 8
    assert accepted(values)


def test_a_chip_computes_only_in_data_types_it_has():
    """vllm-project/vllm-ascend, 310P guide: float16 only."""
    values = stack()
    small = values["models"][1]
    small |= {"shape": "aggregated", "connector": "none", "serve": small.pop("prefill") | {"pool": "edge"}}
    del small["decode"]
    assert refused(values, "models[1].engine.dtype", "float16")
    small["engine"] = {"dtype": "float16"}
    assert accepted(values)


def test_a_chip_without_an_engine_serves_nothing():
    """Neither Envoy nor an engine is built for riscv64."""
    values = stack()
    values["models"][1]["decode"] |= {"pool": "riscv", "chips": 0}
    assert any("models[1].decode[0].pool" in line and "external channel" in line for line in problems(values))


@pytest.mark.parametrize("port", [20_001, 20_002, 27_993])
def test_handshake_ports_stay_out_of_the_ascend_transports_range(port: int):
    """vllm-project/vllm-ascend#6455, #8938, #4725: kv_port 20001 meets ports that the transport picks at random."""
    assert refused(model(stack(), 0, kvPort=port), "models[0].kvPort", "transport of Huawei Ascend 910B", "28000")
    assert accepted(model(stack(), 0, kvPort=28_000))


def test_handshake_ports_stay_out_of_mooncakes_and_nodeports_range():
    """kvcache-ai/Mooncake: RPC ports are random in 15000..17000; Kubernetes: NodePorts in 30000..32767."""
    assert refused(model(stack(), 0, kvPort=15_500), "models[0].kvPort", "Mooncake's RPC ports")
    assert refused(model(stack(), 0, kvPort=30_100), "models[0].kvPort", "NodePorts")
    assert refused(model(stack(), 0, kvPort=65_532), "models[0].kvPort", "pass 65535")


def test_segments_and_engine_stay_below_the_memory_limit():
    """kvcache-ai/Mooncake#1382 and vllm-ascend's KV pool guide: segments are per card."""
    values = stack()
    values["kvStore"]["segment"] = "16Gi"
    found = problems(values)
    assert len(found) == 1
    assert "models[0].prefill[0].memory" in found[0]
    assert "8 × (segment 16Gi + buffer 1Gi) + 2Gi for the engine = 138.0Gi" in found[0]
    values["models"][0]["prefill"]["memory"] = "138Gi"
    assert accepted(values)


def test_ascend_segments_are_whole_gibibytes():
    """vllm-ascend's KV pool guide: 1 GiB multiples."""
    values = stack()
    values["kvStore"]["segment"] = "1536Mi"
    assert refused(values, "kvStore.segment", "whole GiB")
    values["models"].pop(0)
    values["kvStore"]["protocol"] = "rdma"
    assert accepted(values)


def test_a_lease_outlives_the_longest_transfer():
    """vllm-ascend's KV pool guide: a lease below ASCEND_TRANSFER_TIMEOUT ends during the read."""
    values = stack()
    values["kvStore"]["leaseTtlMs"] = 10_000
    assert refused(values, "kvStore.leaseTtlMs", "must exceed ASCEND", "10000 ms")
    values["kvStore"]["leaseTtlMs"] = 10_001
    assert accepted(values)


def test_the_stores_transport_is_one_that_some_engine_speaks():
    """vllm-ascend, mooncake_backend.py: any protocol but `ascend` raises on NPUs; upstream engines speak tcp and rdma."""
    values = stack()
    values["models"].pop(0)
    assert refused(values, "kvStore.protocol", "NVIDIA H100 speak rdma, tcp")
    values["kvStore"]["protocol"] = "tcp"
    assert accepted(values)


def test_a_store_connector_needs_the_store():
    """vllm-project/vllm, docs/features/mooncake_store_connector_usage.md: the engine exits without a master."""
    values = model(stack(), 1, connector="mooncake-store")
    values["kvStore"] = {"enabled": False}
    assert refused(values, "models[1].connector", "kvStore.enabled is false")
    assert accepted(model(values, 1, connector="nixl"))


@pytest.mark.parametrize(
    ("argument", "owner"),
    [
        ("--kv-transfer-config={}", "engine_id"),  # volcano-sh/kthena example: a fixed engine_id is shared by replicas
        ("--block-size=128", "blockSize"),  # vllm-project/vllm-ascend#12589: sharers need equal blocks
        ("--dtype", "dtype"),
        ("--port", "volcano-sh/kthena#1185"),  # Kthena 0.4 scrapes 8000 only
        ("--served_model_name", "router, gateway and engine"),
        ("-tp=4", "chips"),
        ("--tensor-par", "chips"),  # argparse completes beginnings
    ],
)
def test_derived_engine_flags_are_refused(argument: str, owner: str):
    assert refused(model(stack(), 1, engine={"extraArgs": [argument]}), "models[1].engine.extraArgs[0]", owner)


def test_other_engine_flags_are_free():
    extra = ["--trust-remote-code", "--gpu-memory-utilization", "0.9", "--max-num-batched-tokens=8192"]
    assert accepted(model(stack(), 1, engine={"extraArgs": extra}))


def test_every_connector_of_every_chip_is_in_the_table_of_pairs():
    assert {connector for chip in CHIPS.values() for connector in chip.connectors} <= set(CONNECTORS)


def test_every_refusal_has_a_reason():
    for name, rule in CONNECTORS.items():
        assert rule.kthena or rule.why_not_kthena, name
        assert rule.native or rule.why_not_native, name


def test_the_defaults_of_a_valid_stack_stay_out_of_each_others_way():
    settings = Settings.from_mapping(stack())
    assert settings.models[0].kv_port is None
