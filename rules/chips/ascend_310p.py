"""Huawei Ascend 310P (Atlas 300I): inference cards without a link between them, so aggregated serving only.

Resources and labels: Ascend/ascend-device-plugin, Huawei Cloud CCE AI Suite, Project-HAMi/ascend-device-plugin.
"""

from rules.chips.ascend_910b import ASCEND_ENVIRONMENT, ASCEND_MOUNTS
from rules.chips.profile import ChipProfile, DriverStack, PortRange

ASCEND_310P = ChipProfile(
    id="ascend-310p",
    title="Huawei Ascend 310P",
    vendor="huawei",
    serves=True,
    stacks=(
        DriverStack(
            name="mindcluster",
            resource="huawei.com/Ascend310P",
            required_labels={"accelerator": ("huawei-Ascend310P",)},
        ),
        DriverStack(name="cce", resource="huawei.com/ascend-310", required_labels={"accelerator/huawei-npu": ()}),
        DriverStack(name="hami", resource="huawei.com/Ascend310P"),
    ),
    architectures=("arm64", "amd64"),
    connectors=("none",),
    protocols=("ascend",),
    dtypes=("float16",),
    chips_per_pod=(1, 2, 4),
    domain_chips=1,
    memory_bytes=24 * 2**30,
    cost_per_hour=3.0,
    load_bytes_per_second=512 * 2**20,
    engine_start_seconds=60,
    engine_image="engine-ascend",
    transport_ports=PortRange(base=20_000, per_chip=1000),
    environment=ASCEND_ENVIRONMENT,
    pod_ip_variables=("HCCL_IF_IP",),
    mounts=tuple(mount for mount in ASCEND_MOUNTS if "hccn" not in mount.path),
    shared_memory="4Gi",
)
