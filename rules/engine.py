"""The engine's command line and environment, the same for every backend.

Names and flags: vLLM 0.32 (`vllm serve --help`), its MooncakeStoreConnector guide, and Mooncake's store deployment guide.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rules import ports
from rules.kv_transfer import KvTransfer

STORE_CONFIG_PATH: Final = "/etc/mooncake/mooncake.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLaunch:
    """Everything that one engine process is started with."""

    model: str
    path: str
    """Folder of the weights in the pod."""
    transfer: KvTransfer
    dtype: str
    block_size: int
    max_model_len: int
    max_num_seqs: int
    tensor_parallel: int
    """Chips that compute one layer together, over all nodes of the engine."""
    nodes: int = 1
    """Pods that form one engine; the first answers requests, the others are headless."""
    hash_seed: int
    longest_request_seconds: int
    quantization: str | None = None
    enforce_eager: bool = False
    extra_args: tuple[str, ...] = ()

    @property
    def cache_prefix(self) -> str:
        """Digest of the KV identity: equal in all sharers of a cache."""
        return self.transfer.cache_prefix


def arguments(launch: EngineLaunch) -> list[str]:
    """Arguments of `vllm serve`, without the program itself."""
    args = [
        launch.path,
        "--served-model-name", launch.model,
        "--host", "0.0.0.0",
        "--port", str(ports.ENGINE),
        "--dtype", launch.dtype,
        "--block-size", str(launch.block_size),
        "--max-model-len", str(launch.max_model_len),
        "--max-num-seqs", str(launch.max_num_seqs),
        "--shutdown-timeout", str(launch.longest_request_seconds),
    ]  # fmt: skip
    if launch.tensor_parallel > 1:
        args += ["--tensor-parallel-size", str(launch.tensor_parallel)]
    if launch.quantization:
        args += ["--quantization", launch.quantization]
    if launch.enforce_eager:
        args.append("--enforce-eager")
    if transfer := launch.transfer.config():
        args += ["--kv-transfer-config", json.dumps(transfer, sort_keys=True)]
    if launch.nodes > 1:
        args += ["--nnodes", str(launch.nodes), "--node-rank", "$(WORKER_INDEX)", "--master-addr", "$(ENTRY_ADDRESS)"]
    return [*args, *launch.extra_args]


def environment(
    launch: EngineLaunch, chip_environment: Mapping[str, str], pod_ip_variables: Iterable[str] = ()
) -> list[dict[str, Any]]:
    """The container's `env`: fixed values first, then those that depend on the pod's address.

    The pod IP, never a fixed address: Mooncake's default local host name is localhost (kvcache-ai/Mooncake#863), and NIXL's side channel on
    0.0.0.0 makes decode dial itself (volcano-sh/kthena#503).
    """
    transfer = launch.transfer
    fixed = {
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "HOME": "/tmp",
        "PYTHONHASHSEED": str(launch.hash_seed),
        **({"MOONCAKE_CONFIG_PATH": STORE_CONFIG_PATH} if transfer.uses_store else {}),
        **({"VLLM_NIXL_SIDE_CHANNEL_PORT": str(transfer.kv_port)} if transfer.connector == "nixl" else {}),
        **chip_environment,
    }
    addresses = ["VLLM_HOST_IP", *pod_ip_variables]
    if transfer.uses_store:
        addresses.append("MOONCAKE_REQUESTER_LOCAL_HOSTNAME")
    if transfer.connector == "nixl":
        addresses.append("VLLM_NIXL_SIDE_CHANNEL_HOST")
    return [
        *({"name": name, "value": value} for name, value in fixed.items()),
        {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        *({"name": name, "value": "$(POD_IP)"} for name in addresses),
    ]


def store_config(*, master: str, segment_bytes: int, buffer_bytes: int, protocol: str, device: str) -> dict[str, Any]:
    """mooncake.json of an engine; P2P handshake, so no metadata service and nothing stale to clean up.

    An engine that lends nothing must say so: vLLM refuses a segment of 0 bytes in its default mode.
    """
    return {
        **({} if segment_bytes else {"mode": "standalone-store"}),
        "metadata_server": "P2PHANDSHAKE",
        "master_server_address": master,
        "global_segment_size": segment_bytes,
        "local_buffer_size": buffer_bytes,
        "protocol": protocol,
        "device_name": device,
    }
