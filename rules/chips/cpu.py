"""CPU for development: no chip resource, the CPU build of the engine."""

from rules.chips.profile import ChipProfile, DriverStack

CPU = ChipProfile(
    id="cpu",
    title="CPU (development)",
    vendor="cpu",
    serves=True,
    stacks=(DriverStack(name="none", resource=None),),
    architectures=("amd64", "arm64"),
    connectors=("mooncake-store", "none"),
    chips_per_pod=(0,),
    domain_chips=0,
    memory_bytes=0,
    cost_per_hour=0.0,
    load_bytes_per_second=200 * 2**20,
    engine_start_seconds=90,
    engine_image="engine-cpu",
    block_size_step=32,  # vLLM's CPU attention kernel refuses others when the KV cache is allocated, minutes after the start
    environment={
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "OMP_NUM_THREADS": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    },
)
