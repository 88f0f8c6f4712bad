"""Huawei Ascend 910B (Atlas 800/900 A2): eight chips a host, HCCS inside, RoCE between hosts."""

from rules.chips.profile import ChipProfile, DriverStack, HostMount

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
    connectors=("mooncake-v1", "ascend-store", "layerwise"),
    chips_per_pod=(1, 2, 4, 8),
    domain_chips=8,
    memory_bytes=64 * 2**30,
    cost_per_hour=12.0,
    load_bytes_per_second=1 * 2**30,
    engine_start_seconds=60,
    engine_image="engine-ascend",
    environment={"HCCL_INTRA_ROCE_ENABLE": "1", "PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True"},
    mounts=(
        HostMount(path="/etc/hccn.conf", kind="File"),
        HostMount(path="/usr/local/dcmi", kind="Directory"),
        HostMount(path="/usr/local/bin/npu-smi", kind="File"),
        HostMount(path="/usr/local/Ascend/driver/lib64", kind="Directory"),
        HostMount(path="/usr/local/Ascend/driver/version.info", kind="File"),
        HostMount(path="/etc/ascend_install.info", kind="File"),
    ),
)
