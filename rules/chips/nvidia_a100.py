"""NVIDIA A100: eight chips a host, NVLink inside; 25 yuan an hour, so two warm pods cost about 36,000 yuan a month (B6)."""

from rules.chips import nvidia
from rules.chips.profile import ChipProfile

NVIDIA_A100 = ChipProfile(
    id="nvidia-a100",
    title="NVIDIA A100",
    vendor="nvidia",
    serves=True,
    stacks=nvidia.driver_stacks(
        products=("NVIDIA-A100-SXM4-80GB", "NVIDIA-A100-80GB-PCIe"),
        slices=("1g.10gb", "2g.20gb", "3g.40gb"),
    ),
    architectures=("amd64",),
    connectors=nvidia.CONNECTORS,
    protocols=nvidia.PROTOCOLS,
    chips_per_pod=(1, 2, 4, 8),
    domain_chips=8,
    memory_bytes=80 * 2**30,
    cost_per_hour=25.0,
    load_bytes_per_second=1 * 2**30,
    engine_start_seconds=60,
    engine_image="engine-nvidia",
    environment=nvidia.ENVIRONMENT,
    shared_memory="8Gi",
)
