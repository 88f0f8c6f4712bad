"""What NVIDIA's data-centre chips have in common: driver stacks, connectors, transports.

Resources and labels: NVIDIA/k8s-device-plugin and its GPU feature discovery.
"""

from rules.chips.profile import Connector, DriverStack, Protocol

CONNECTORS: tuple[Connector, ...] = ("nixl", "mooncake-store", "mooncake", "none")
"""Not LMCache: the engine image has no such package."""
PROTOCOLS: tuple[Protocol, ...] = ("rdma", "tcp")
PRODUCT = "nvidia.com/gpu.product"
ENVIRONMENT = {"WITH_NVIDIA_PEERMEM": "0"}
"""Mooncake without the nvidia-peermem kernel module; with the module missing and 1, memory can't be registered."""


def driver_stacks(products: tuple[str, ...], slices: tuple[str, ...]) -> tuple[DriverStack, ...]:
    """Whole chips under the GPU operator, and each MIG profile (strategy mixed) as a stack of its own."""
    whole = DriverStack(name="gpu-operator", resource="nvidia.com/gpu", required_labels={PRODUCT: products})
    parts = (
        DriverStack(
            name=f"mig-{profile}",
            resource=f"nvidia.com/mig-{profile}",
            required_labels={"nvidia.com/mig.strategy": ("mixed",)},
            partitioned=True,
        )
        for profile in slices
    )
    return (whole, *parts)
