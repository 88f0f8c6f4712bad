"""T-Head XuanTie C910 (RISC-V): neither Envoy nor an engine is built for it; its models go to the external channel (A6)."""

from rules.chips.profile import ChipProfile, DriverStack

XUANTIE_C910 = ChipProfile(
    id="xuantie-c910",
    title="T-Head XuanTie C910",
    vendor="xuantie",
    serves=False,
    stacks=(DriverStack(name="none", resource=None),),
    architectures=("riscv64",),
    connectors=(),
    chips_per_pod=(),
    domain_chips=0,
    memory_bytes=0,
    cost_per_hour=0.0,
    load_bytes_per_second=50 * 2**20,
    engine_start_seconds=0,
    engine_image=None,
)
