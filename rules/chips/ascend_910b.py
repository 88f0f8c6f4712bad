"""Huawei Ascend 910B (Atlas 800/900 A2): eight chips a host, HCCS inside, RoCE between hosts.

Resources and labels: Ascend/ascend-device-plugin, Huawei Cloud CCE AI Suite, Project-HAMi/ascend-device-plugin.
"""

from rules.chips.profile import ChipProfile, DriverStack, HostMount, PortRange

ASCEND_ENVIRONMENT = {
    "GLOO_SOCKET_IFNAME": "eth0",
    "TP_SOCKET_IFNAME": "eth0",
    "HCCL_SOCKET_IFNAME": "eth0",
    "PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True",
}
ASCEND_MOUNTS = (
    HostMount(path="/etc/hccn.conf", kind="File"),
    HostMount(path="/usr/local/dcmi", kind="Directory"),
    HostMount(path="/usr/local/bin/npu-smi", kind="File"),
    HostMount(path="/usr/local/Ascend/driver/lib64", kind="Directory"),
    HostMount(path="/usr/local/Ascend/driver/version.info", kind="File"),
    HostMount(path="/usr/local/Ascend/driver/tools/hccn_tool", kind="File"),
    HostMount(path="/etc/ascend_install.info", kind="File"),
)
"""Without /etc/hccn.conf pods turn Ready and answer garbage (vllm-project/vllm-ascend#7711)."""

ASCEND_910B = ChipProfile(
    id="ascend-910b",
    title="Huawei Ascend 910B",
    vendor="huawei",
    serves=True,
    stacks=(
        DriverStack(
            name="mindcluster", resource="huawei.com/Ascend910", required_labels={"accelerator": ("huawei-Ascend910",)}
        ),
        DriverStack(name="cce", resource="huawei.com/ascend-1980", required_labels={"accelerator/huawei-npu": ()}),
        DriverStack(name="hami-b2", resource="huawei.com/Ascend910B2"),
        DriverStack(name="hami-b3", resource="huawei.com/Ascend910B3"),
        DriverStack(name="hami-b4", resource="huawei.com/Ascend910B4"),
    ),
    architectures=("arm64", "amd64"),
    connectors=("mooncake-v1", "ascend-store", "layerwise", "none"),
    protocols=("ascend",),
    chips_per_pod=(1, 2, 4, 8),
    domain_chips=8,
    memory_bytes=64 * 2**30,
    cost_per_hour=12.0,
    load_bytes_per_second=1 * 2**30,
    engine_start_seconds=60,
    engine_image="engine-ascend",
    # vllm-ascend reserves 20000 + 1000 a card for the Ascend transport (vllm-project/vllm-ascend#6455).
    transport_ports=PortRange(base=20_000, per_chip=1000),
    environment=ASCEND_ENVIRONMENT
    | {
        # Required on A2 for transfers within a host (kvcache-ai/Mooncake#3749, vllm-project/vllm-ascend#5044).
        "HCCL_INTRA_ROCE_ENABLE": "1",
        "ASCEND_BUFFER_POOL": "0:0",
        # The default of 3 s is too short for two prefill pods and one decode (vllm-project/vllm-ascend#7401).
        "ASCEND_CONNECT_TIMEOUT": "10000",
        "ASCEND_TRANSFER_TIMEOUT": "10000",
    },
    pod_ip_variables=("HCCL_IF_IP",),
    mounts=ASCEND_MOUNTS,
    shared_memory="15Gi",
)
