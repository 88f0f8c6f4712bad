"""NVIDIA H100: eight chips a host, NVLink inside, InfiniBand or RoCE between hosts."""

from rules.chips import nvidia
from rules.chips.profile import ChipProfile

NVIDIA_H100 = ChipProfile(
    id="nvidia-h100",
    title="NVIDIA H100",
    vendor="nvidia",
    serves=True,
    stacks=nvidia.driver_stacks(
        products=("NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-PCIe", "NVIDIA-H100-NVL"),
        slices=("1g.10gb", "2g.20gb", "3g.40gb"),
    ),
    architectures=("amd64",),
    connectors=nvidia.CONNECTORS,
    protocols=nvidia.PROTOCOLS,
    chips_per_pod=(1, 2, 4, 8),
    domain_chips=8,
    memory_bytes=80 * 2**30,
    cost_per_hour=45.0,
    load_bytes_per_second=2 * 2**30,
    engine_start_seconds=60,
    engine_image="engine-nvidia",
    environment=nvidia.ENVIRONMENT,
    shared_memory="8Gi",
)
