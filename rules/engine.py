"""The engine's command line and environment, the same for every backend.

Names and flags: vLLM 0.32 (`vllm serve --help`), its MooncakeStoreConnector guide, and Mooncake's store deployment guide.
"""

import json
from dataclasses import dataclass
from typing import Any, Final

from rules import names, ports

STORE_CONFIG_PATH: Final = "/etc/mooncake/mooncake.json"

_KV_ROLE: Final = {names.PREFILL: "kv_producer", names.DECODE: "kv_consumer", names.SERVE: "kv_both"}

_STORE_CONNECTORS: Final = {"mooncake-store": "MooncakeStoreConnector", "ascend-store": "AscendStoreConnector"}


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLaunch:
    """Everything that one engine process is started with."""

    model: str
    path: str
    """Folder of the weights in the pod."""
    role: str
    connector: str
    cache_prefix: str
    """Digest of the KV identity (rules/kv_identity.py)."""
    dtype: str
    block_size: int
    max_model_len: int
    max_num_seqs: int
    tensor_parallel: int
    hash_seed: int
    longest_request_seconds: int
    quantization: str | None = None
    enforce_eager: bool = False
    extra_args: tuple[str, ...] = ()


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
    if transfer := kv_transfer(launch):
        args += ["--kv-transfer-config", json.dumps(transfer, sort_keys=True)]
    return [*args, *launch.extra_args]


def kv_transfer(launch: EngineLaunch) -> dict[str, Any] | None:
    """vLLM's KV transfer configuration, or None without a connector.

    `kv_load_failure_policy: recompute`: with the default `fail`, removing one pod breaks requests on healthy ones.
    """
    if launch.connector == "none":
        return None
    if launch.connector not in _STORE_CONNECTORS:
        raise ValueError(
            f"connector {launch.connector!r} has no launch rule; known: {', '.join(sorted(_STORE_CONNECTORS))}, none"
        )
    return {
        "kv_connector": _STORE_CONNECTORS[launch.connector],
        "kv_role": _KV_ROLE[launch.role],
        "kv_load_failure_policy": "recompute",
        "kv_connector_extra_config": {"cache_prefix": launch.cache_prefix},
    }


def environment(launch: EngineLaunch, chip_environment: dict[str, str]) -> list[dict[str, Any]]:
    """The container's `env`: fixed values first, then those that depend on the pod's address.

    The pod IP, never a fixed address: Mooncake's default local host name is localhost (kvcache-ai/Mooncake store guide).
    """
    fixed = {
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "HOME": "/tmp",
        "PYTHONHASHSEED": str(launch.hash_seed),
        **({"MOONCAKE_CONFIG_PATH": STORE_CONFIG_PATH} if launch.connector != "none" else {}),
        **chip_environment,
    }
    pod_ip = [
        {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "VLLM_HOST_IP", "value": "$(POD_IP)"},
    ]
    if launch.connector != "none":
        pod_ip.append({"name": "MOONCAKE_REQUESTER_LOCAL_HOSTNAME", "value": "$(POD_IP)"})
    return [*({"name": name, "value": value} for name, value in fixed.items()), *pod_ip]


def store_config(*, master: str, segment_bytes: int, buffer_bytes: int, protocol: str, device: str) -> dict[str, Any]:
    """mooncake.json of an engine; P2P handshake, so no metadata service and nothing stale to clean up."""
    return {
        "metadata_server": "P2PHANDSHAKE",
        "master_server_address": master,
        "global_segment_size": segment_bytes,
        "local_buffer_size": buffer_bytes,
        "protocol": protocol,
        "device_name": device,
    }
