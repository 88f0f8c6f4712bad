"""KV connectors of the engines, and which router speaks the dialogue that each one needs.

A wrong pair shows no error: pods are Ready, answers look right, and decode recomputes every prompt.
"""

from dataclasses import dataclass
from typing import Final, Literal

from rules.chips import ChipProfile, Connector
from rules.problem import Problem

Backend = Literal["native", "kthena"]
KthenaConnector = Literal["http", "lmcache", "nixl", "mooncake"]
NativeConnector = Literal["nixl"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorRule:
    """One connector: its class in the engine, and the name by which each router speaks to it (None: the router can't)."""

    engine_class: str | None
    shares_store: bool = False
    """KV goes through the Mooncake store, so every replica reuses a prefix that any other computed."""
    peer_to_peer: bool = False
    """Decode takes KV from one prefill pod, so both must be told of each other by the router."""
    kthena: KthenaConnector | None = None
    native: NativeConnector | None = None
    why_not_kthena: str = ""
    why_not_native: str = ""


_NO_METASERVER: Final = (
    "MooncakeLayerwiseConnector needs a decode-first proxy that offers /v1/metaserver, and this router has none"
)

CONNECTORS: Final[dict[Connector, ConnectorRule]] = {
    "mooncake-store": ConnectorRule(
        engine_class="MooncakeStoreConnector", shares_store=True, kthena="http", native="nixl"
    ),
    "ascend-store": ConnectorRule(engine_class="AscendStoreConnector", shares_store=True, kthena="http", native="nixl"),
    "mooncake-v1": ConnectorRule(
        engine_class="MooncakeConnectorV1",
        peer_to_peer=True,
        kthena="mooncake",
        why_not_native="it doesn't compare models, and a rolling update pairs prefill of one revision with decode of the other: garbage "
        "answers; Kthena pairs within a group, which changes as a whole",
    ),
    # Its handshake compares model path, data type and engine version, so engines of two revisions refuse each other and recompute.
    "nixl": ConnectorRule(engine_class="NixlConnector", peer_to_peer=True, kthena="nixl", native="nixl"),
    "lmcache": ConnectorRule(engine_class="LMCacheConnectorV1", kthena="lmcache", native="nixl"),
    "mooncake": ConnectorRule(
        engine_class="MooncakeConnector",
        peer_to_peer=True,
        why_not_kthena="since vllm-project/vllm#31034 it needs a transfer_id and the prefill's bootstrap address, which Kthena's router "
        "doesn't send (kvcache-ai/Mooncake#4071): decode would silently recompute",
        why_not_native="vllm-router 0.1.17 takes bootstrap ports for fixed prefill addresses only, not with discovery",
    ),
    "layerwise": ConnectorRule(
        engine_class="MooncakeLayerwiseConnector",
        peer_to_peer=True,
        why_not_kthena=_NO_METASERVER,
        why_not_native=_NO_METASERVER,
    ),
    "none": ConnectorRule(
        engine_class=None,
        why_not_kthena="prefill and decode without a connector compute every prompt twice",
        why_not_native="prefill and decode without a connector compute every prompt twice",
    ),
}


def kthena_type(connector: Connector) -> KthenaConnector | None:
    """`spec.kvConnector.type` of a ModelServer. Left out it means `http`: answers look right and no KV moves."""
    return CONNECTORS[connector].kthena


def store_companion(connector: Connector, chip: ChipProfile) -> Connector | None:
    """The store connector that runs beside a peer-to-peer one (MultiConnector), so that replicas share prefixes too (C5)."""
    if not CONNECTORS[connector].peer_to_peer:
        return None
    return next((each for each in chip.connectors if CONNECTORS[each].shares_store), None)


def joins_store(connector: Connector, chip: ChipProfile, enabled: bool) -> bool:
    """Whether an engine lends memory to the Mooncake store and reads from it, alone or beside a peer-to-peer connector."""
    return enabled and (CONNECTORS[connector].shares_store or store_companion(connector, chip) is not None)


def router_speaks(path: str, connector: Connector, backend: Backend, shape: str) -> list[Problem]:
    """The backend's router knows the dialogue that the connector needs for prefill/decode disaggregation."""
    if shape != "pd":
        return []
    rule = CONNECTORS[connector]
    if (rule.kthena if backend == "kthena" else rule.native) is not None:
        return []
    reason = rule.why_not_kthena if backend == "kthena" else rule.why_not_native
    known = [name for name, each in CONNECTORS.items() if (each.kthena if backend == "kthena" else each.native)]
    return [Problem(path, connector, reason, f"choose one of: {', '.join(known)}")]


def alone_needs_no_peer(path: str, connector: Connector, shape: str) -> list[Problem]:
    """An aggregated engine has no prefill peer, so a peer-to-peer connector has nothing to talk to."""
    if shape != "aggregated" or not CONNECTORS[connector].peer_to_peer:
        return []
    return [Problem(path, connector, "shape aggregated has no prefill pods to fetch from", "use a store or none")]


def chip_has(path: str, connector: Connector, chip: ChipProfile) -> list[Problem]:
    """The chip's engine has the connector."""
    if connector in chip.connectors or not chip.serves:
        return []
    return [
        Problem(
            path, connector, f"the engine for {chip.title} has no such connector", f"use {', '.join(chip.connectors)}"
        )
    ]


def store_is_there(path: str, connector: Connector, enabled: bool) -> list[Problem]:
    """A store connector needs the Mooncake store."""
    if enabled or not CONNECTORS[connector].shares_store:
        return []
    return [
        Problem(
            path, connector, "needs the Mooncake store, and kvStore.enabled is false", "enable kvStore, or use nixl"
        )
    ]
