"""Which models share KV through a store, and over which transports: each transport has a store of its own."""

from typing import TYPE_CHECKING

from rules.chips import ChipProfile, Protocol, engine_chip
from rules.connectors import joins_store
from rules.kv_transport import store_protocol
from settings.placed import placed

if TYPE_CHECKING:
    from settings.settings import Settings


def sharing_chips(settings: "Settings") -> dict[str, list[ChipProfile]]:
    """Model → the chips whose engines join a store, each once; models that share nothing are left out."""
    found: dict[str, dict[str, ChipProfile]] = {}
    for index, model in enumerate(settings.models):
        for each in placed(settings, index):
            chip = engine_chip(each.member.chip.id, model.engine.build)
            if joins_store(model.connector, chip, settings.kv_store.enabled):
                found.setdefault(model.name, {})[chip.id] = chip
    return {name: list(chips.values()) for name, chips in found.items()}


def sharing_models(settings: "Settings", protocol: Protocol) -> tuple[str, ...]:
    """The models whose engines are clients of one transport's store, by name."""
    preferred = settings.kv_store.protocol
    return tuple(
        sorted(
            name
            for name, chips in sharing_chips(settings).items()
            if any(store_protocol(preferred, chip) == protocol for chip in chips)
        )
    )


def store_protocols(settings: "Settings") -> tuple[Protocol, ...]:
    """The transports of the stack's stores, the preferred one first: segments of one can't be read over another."""
    preferred = settings.kv_store.protocol
    used: set[Protocol] = {
        store_protocol(preferred, chip) for chips in sharing_chips(settings).values() for chip in chips
    }
    return tuple(sorted(used, key=lambda protocol: (protocol != preferred, protocol)))


def store_pod_count(settings: "Settings", protocol: Protocol) -> int:
    """Pods that hold the memory of one transport's store."""
    pods = settings.kv_store.pods_of(protocol)
    return pods.replicas if pods else 0
