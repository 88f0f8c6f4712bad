"""The store fits its engines, its chips, its nodes and the boundary around it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from rules import connectors, kv_transport, store_pods
from rules.chips import engine_chip
from rules.problem import Problem
from rules.quantity import parse, to_bytes
from settings.capacity_plan import role_plans
from settings.placed import placed
from settings.sharing import sharing_chips, store_protocols

if TYPE_CHECKING:
    from settings.settings import Settings


def memory_holds_the_segments(settings: "Settings") -> list[Problem]:
    """What each engine lends to the store fits its memory, in steps that its transport takes."""
    problems = []
    store = settings.kv_store
    for index, model in enumerate(settings.models):
        for each in placed(settings, index):
            member, memory = each.member, each.placement.memory_limit or each.placement.memory
            chip = engine_chip(member.chip.id, model.engine.build)
            if not connectors.joins_store(model.connector, chip, store.enabled):
                continue
            workers = member.chips if model.engine.build == "chip" else 1
            protocol = kv_transport.store_protocol(store.protocol, chip)
            segment = store.engine_segment(protocol)
            problems += kv_transport.segments_fit(f"{member.path}.memory", memory, segment, store.buffer, workers)
            if store.engines_lend(protocol):
                whole = kv_transport.segment_is_whole(store.segment, protocol)
                problems += [problem for problem in whole if problem not in problems]
    return problems


def store_suits_its_chips(settings: "Settings") -> list[Problem]:
    """Some engine speaks the store's preferred transport (the others take their own), and leases outlive every transfer."""
    store = settings.kv_store
    chips = list({chip.id: chip for chips in sharing_chips(settings).values() for chip in chips}.values())
    return [
        *kv_transport.protocol_is_spoken("kvStore.protocol", store.protocol, chips),
        *(each for chip in chips for each in kv_transport.lease_outlives_transfers(store.lease_ttl_ms, chip)),
    ]


def the_etcd_can_be_reached(settings: "Settings") -> list[Problem]:
    """Behind the network boundary masters and engines reach the etcd of their election only where it is named."""
    ha, network = settings.kv_store.ha, settings.network
    if ha is None or not settings.kv_store.enabled or not network.enabled or network.etcd:
        return []
    limit = f"kvStore.ha elects its masters in {', '.join(ha.etcd)}, and the boundary lets nobody reach it"
    return [Problem("network.etcd", None, limit, "give its addresses, such as 10.0.0.0/24")]


def store_pods_have_a_place(settings: "Settings") -> list[Problem]:
    """Store pods serve a store of the stack, their segment fits them, and they fit the nodes of their pool beside the engines."""
    store, path = settings.kv_store, "kvStore.storePods"
    if store.store_pods is None:
        return []
    if not store.enabled:
        return [Problem(path, None, "kvStore.enabled is false", "enable the store, or remove its pods")]
    pods, protocols = store.store_pods, store_protocols(settings)
    problems = store_pods.segment_fits(path, pods.memory_limit, pods.segment)
    problems += store_pods.some_store_can_have_them(path, protocols)
    pool = next((pool for pool in settings.node_pools if pool.name == pods.pool), None)
    if pods.pool is not None and pool is None:
        names = ", ".join(sorted(pool.name for pool in settings.node_pools)) or "none declared"
        return [*problems, Problem(f"{path}.pool", pods.pool, "is not a declared pool", f"choose one of: {names}")]
    problems += store_pods.rdma_is_within_reach(path, protocols, pods.pool, pool.rdma_resource if pool else None)
    if pool is None:
        return problems
    too_large = [
        Problem(f"{path}.{name}", wanted, f"is more than a node of pool {pool.name} has ({there})", "lower it")
        for name, wanted, there in (("memory", pods.memory_limit, pool.memory), ("cpu", pods.cpu, pool.cpu))
        if parse(wanted) > parse(there)
    ]
    if too_large:
        return [*problems, *too_large]
    engines = sum(
        plan.declared * to_bytes(plan.placement.memory)
        for plan in role_plans(settings)
        if plan.placement.pool == pool.name
    )
    held = sum(1 for protocol in protocols if store_pods.hold(protocol))
    stores = held * pods.replicas * to_bytes(pods.memory_limit)
    there = pool.size * to_bytes(pool.memory)
    return [*problems, *store_pods.pool_has_room(f"{path}.pool", pool.name, there, engines, stores)]


CHECKS: Final[tuple[Callable[["Settings"], list[Problem]], ...]] = (
    memory_holds_the_segments,
    store_suits_its_chips,
    the_etcd_can_be_reached,
    store_pods_have_a_place,
)
