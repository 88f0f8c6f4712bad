"""The engines' `--kv-transfer-config`: one builder for all connectors, from the same sizes on both sides.

Sources: vLLM's guides of MooncakeStoreConnector and NixlConnector, vllm-ascend's KV pool and PD guides. No `engine_id`: a fixed one is
shared by all replicas and outlives restarts. No `kv_connector_module_path`: names are registered since vllm-ascend 0.13.
"""

from dataclasses import dataclass
from typing import Any, Final, Literal

from rules import names
from rules.chips import Connector
from rules.connectors import CONNECTORS

KvRole = Literal["kv_producer", "kv_consumer", "kv_both"]
KV_ROLE: Final[dict[str, KvRole]] = {
    names.PREFILL: "kv_producer",
    names.DECODE: "kv_consumer",
    names.SERVE: "kv_both",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KvTransfer:
    """How one engine exchanges KV; sizes are tensor parallel sizes, equal in all engines of the model."""

    connector: Connector
    companion: Connector | None = None
    """A store connector beside a peer-to-peer one."""
    role: str
    cache_prefix: str
    """Digest of the KV identity (rules/kv_identity.py)."""
    kv_port: int = 0
    prefill_parallel: int = 1
    decode_parallel: int = 1

    @property
    def uses_store(self) -> bool:
        """Whether the engine joins the Mooncake store."""
        return any(CONNECTORS[each].shares_store for each in self._connectors())

    def config(self) -> dict[str, Any] | None:
        """vLLM's KVTransferConfig, or None without a connector.

        `kv_load_failure_policy: recompute`: with the default `fail`, removing one pod breaks requests on healthy ones.
        """
        parts = [_PARTS[connector](self) for connector in self._connectors()]
        if not parts:
            return None
        if len(parts) == 1:
            return parts[0] | {"kv_load_failure_policy": "recompute"}
        return {
            "kv_connector": "MultiConnector",
            "kv_role": KV_ROLE[self.role],
            "kv_load_failure_policy": "recompute",
            "kv_connector_extra_config": {"connectors": parts},
        }

    def _connectors(self) -> list[Connector]:
        return [each for each in (self.connector, self.companion) if each is not None and each != "none"]


def _part(transfer: KvTransfer, connector: Connector, **more: Any) -> dict[str, Any]:
    return {"kv_connector": CONNECTORS[connector].engine_class, "kv_role": KV_ROLE[transfer.role], **more}


def _mooncake_store(transfer: KvTransfer) -> dict[str, Any]:
    """Keys hold dtype, block size and parallel layout: different sizes share only when both are told (`store_tp_size`)."""
    extra: dict[str, Any] = {"cache_prefix": transfer.cache_prefix}
    if transfer.prefill_parallel != transfer.decode_parallel:
        extra["store_tp_size"] = max(transfer.prefill_parallel, transfer.decode_parallel)
    return _part(transfer, "mooncake-store", kv_connector_extra_config=extra)


def _ascend_store(transfer: KvTransfer) -> dict[str, Any]:
    """`load_async` stays off: prefill hung with blocks held (vllm-project/vllm-ascend#15802)."""
    extra = {
        "backend": "mooncake",
        "lookup_rpc_port": "0",
        "load_async": False,
        "prefill_tp_size": transfer.prefill_parallel,
        "decode_tp_size": transfer.decode_parallel,
        "consumer_is_to_load": transfer.companion is None,
    }
    return _part(transfer, "ascend-store", kv_connector_extra_config=extra)


def _mooncake_v1(transfer: KvTransfer) -> dict[str, Any]:
    """Both sizes are mandatory and must be the real ones; the published example claims two data-parallel ranks and starts one."""
    return _part(
        transfer,
        "mooncake-v1",
        kv_port=str(transfer.kv_port),
        kv_buffer_device="npu",
        kv_connector_extra_config={
            "prefill": {"dp_size": 1, "tp_size": transfer.prefill_parallel},
            "decode": {"dp_size": 1, "tp_size": transfer.decode_parallel},
        },
    )


def _nixl(transfer: KvTransfer) -> dict[str, Any]:
    return _part(transfer, "nixl")


_PARTS: Final = {
    "mooncake-store": _mooncake_store,
    "ascend-store": _ascend_store,
    "mooncake-v1": _mooncake_v1,
    "nixl": _nixl,
}
"""The connectors that some router speaks; the others are refused before a pod is built (rules/connectors.py)."""
