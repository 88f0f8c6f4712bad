"""What a changed stack file does to a running stack: what rolls, what is made anew, what it needs, and what becomes of the cache."""

from collections.abc import Iterator
from dataclasses import dataclass

from rules.chips import Protocol, engine_chip
from rules.kv_transport import store_protocol
from rules.placement import Demand
from rules.upgrade import PoolSize, Rollout, missing_nodes, rollout
from settings.capacity_plan import RolePlan, role_plans
from settings.models import ModelSettings
from settings.settings import Settings
from settings.sharing import sharing_chips

_SIZES = {"cpu", "memory", "memory_limit", "chips", "nodes", "tensor_parallel"}
_OWN_IMAGES = {
    "router": "routers are replaced one by one and drain first: no request is lost",
    "gateway": "gateways are replaced one by one and drain first: no request is lost",
    "capacity": "the capacity controller restarts: floors and warm pods wait for some seconds",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One consequence, worded for the person who changes the stack. `fails`: it can't end well as the pools are."""

    subject: str
    change: str
    consequence: str
    fails: bool = False


def rollouts(settings: Settings) -> dict[str, Rollout]:
    """Model → how its engines would change, with everything else as declared."""
    plans = list(role_plans(settings))
    pools = _sizes(settings)
    everything = [demand for plan in plans for demand in _demands(plan)]
    return {
        model.name: rollout(
            [_demands(plan)[0] for plan in plans if plan.model is model],
            everything,
            pools,
            model.backend,
            model.groups,
            model.rollout,
        )
        for model in settings.models
    }


def steps(before: Settings, after: Settings) -> list[Step]:
    """Everything that `up` will do to engines, store and Kthena's objects on the way from one stack to another."""
    return [*_models(before, after), *_store(before, after), *_images(before, after), *_kthena(before, after)]


def told(way: Rollout) -> str:
    """A rollout in one sentence."""
    twice = "old and new sets have room side by side"
    if not way.blue_green:
        needed = _nodes(way.missing_for_blue_green)
        twice = f"only a change of backend or pools needs old and new sets at once, and {needed} more for the time"
    if way.way == "blueGreen":
        return "the whole new set is made beside the old one, the routers' Service moves to it once it is Ready, and the old set goes last"
    text = {
        "surge": "one pod of each role after the other, with one more while it lasts",
        "groups": "one whole group after the other: prefill and decode together",
        "interrupts": "the only group goes before its successor comes: the channel carries the time, or use groups: 2",
        "stuck": f"what is to come finds no chips, so it never ends: lacks {_nodes(way.missing)}",
    }[way.way]
    return f"{text}; {twice}"


def _sizes(settings: Settings) -> list[PoolSize]:
    return [PoolSize(pool.name, pool.size, pool.chips_per_node) for pool in settings.node_pools]


def _nodes(missing: dict[str, int]) -> str:
    return ", ".join(f"{count} node{'s' if count > 1 else ''} of pool {pool}" for pool, count in missing.items())


def _demands(plan: RolePlan) -> list[Demand]:
    place = plan.placement
    declared = Demand(plan.path, place.pool, plan.declared, place.chips)
    return [declared, Demand("warmPool", place.pool, plan.warm, place.chips)] if plan.warm else [declared]


def _models(before: Settings, after: Settings) -> Iterator[Step]:
    old, ways = {model.name: model for model in before.models}, rollouts(after)
    for model in after.models:
        if model.name not in old:
            yield Step(model.name, "new", "is made; nothing else changes")
            continue
        was = old[model.name]
        if _other_objects(was, model):
            yield _side_by_side(was, before, after)
            continue
        if was.router != model.router and model.backend == "native":
            yield Step(model.name, "router", _OWN_IMAGES["router"])
        changes = list(_changes(was, model, before, after))
        if not changes:
            continue
        way = ways[model.name]
        same = _identity(was, before) == _identity(model, after)
        cache = "its cache stays" if same else "its cache starts empty, and no engine reads KV of the other version"
        yield Step(model.name, ", ".join(changes), f"engines change: {told(way)}; {cache}", way.way == "stuck")
    gone = old.keys() - {model.name for model in after.models}
    yield from (Step(name, "removed", "its engines and routers are deleted; clients get 404") for name in sorted(gone))


def _other_objects(was: ModelSettings, model: ModelSettings) -> bool:
    """Whether the new engines have names of their own, so that Pulumi makes them first and deletes the old ones last."""
    if was.backend != model.backend or was.rollout != model.rollout:
        return True
    return model.backend == "native" and _pools(was) != _pools(model)


def _side_by_side(was: ModelSettings, before: Settings, after: Settings) -> Step:
    old = [demand for plan in role_plans(before) if plan.model is was for demand in _demands(plan)]
    all_new = [demand for plan in role_plans(after) for demand in _demands(plan)]
    missing = missing_nodes([*all_new, *old], _sizes(after))
    text = "new engines are made first and the old ones deleted last"
    lacking = f", and the pools lack {_nodes(missing)} for both: go by way of fewer replicas" if missing else ""
    return Step(was.name, "backend, shape, pools or rollout", text + lacking, bool(missing))


def _changes(was: ModelSettings, model: ModelSettings, before: Settings, after: Settings) -> Iterator[str]:
    """What of a model restarts its engines; replicas alone do not."""
    for name in ("shape", "weights", "engine", "connector", "kv_port", "longest_request_seconds", "priority"):
        if getattr(was, name) != getattr(model, name):
            yield name.replace("_", " ")
    if _placed(was) != _placed(model):
        yield "size of its pods"
    if _pools(was) != _pools(model) and was.shape == model.shape:
        yield "pools"
    images = _engine_images(model, after)
    if any(_image(before, name) != _image(after, name) for name in images):
        yield "engine image"
    if _nodes_of(was, before) != _nodes_of(model, after):
        yield "nodes of its pools"
    if _client_view(was, before) != _client_view(model, after):
        yield "kvStore"


def _placed(model: ModelSettings) -> list[dict[str, object]]:
    return [each.model_dump(include=_SIZES) for placements in model.roles().values() for each in placements]


def _pools(model: ModelSettings) -> list[tuple[str, str]]:
    return [(role, each.pool) for role, placements in model.roles().items() for each in placements]


def _identity(model: ModelSettings, settings: Settings) -> tuple[object, ...]:
    """What rules/kv_identity.py hashes, as far as a stack file says it."""
    engine, weights = model.engine, model.weights
    version, block = engine.version, engine.block_size
    return (weights.location, weights.revision, engine.dtype, engine.quantization, version, block, settings.environment)


def _engine_images(model: ModelSettings, settings: Settings) -> set[str]:
    chips = {pool.name: pool.chip for pool in settings.node_pools}
    used = (each.pool for placements in model.roles().values() for each in placements)
    return {engine_chip(chips[pool], model.engine.build).engine_image or "" for pool in used}


def _image(settings: Settings, name: str) -> str | None:
    images = settings.cluster.images
    return images.get(name) if isinstance(images, dict) else None


def _nodes_of(model: ModelSettings, settings: Settings) -> list[object]:
    """What of its pools stands in a model's pods."""
    pools = {pool.name: pool for pool in settings.node_pools}
    named = (pools[pool] for _, pool in _pools(model))
    return [
        (pool.node_selector(), pool.tolerations, pool.driver_stack, pool.topology_key, pool.rdma_resource)
        for pool in named
    ]


def _client_view(model: ModelSettings, settings: Settings) -> list[object]:
    """What of the store stands in the mooncake.json of a model's engines and in their variables."""
    store = settings.kv_store
    chips = sharing_chips(settings).get(model.name, ())
    protocols: set[Protocol] = {store_protocol(store.protocol, chip) for chip in chips}
    etcd = store.ha.etcd if store.ha else ()
    return [
        (protocol, protocol == store.protocol, store.engine_segment(protocol), store.buffer, etcd, device)
        for protocol in sorted(protocols)
        for device in (store.device if protocol == "rdma" else "",)
    ]


def _store(before: Settings, after: Settings) -> Iterator[Step]:
    empty = "the whole cache starts empty; no request is lost"
    if _image(before, "mooncake") != _image(after, "mooncake"):
        yield Step("kvStore", "Mooncake image", f"masters and store pods restart: {empty}")
    master = {"client_ttl_seconds", "lease_ttl_ms", "ha"}
    old, new = before.kv_store, after.kv_store
    if old.model_dump(include=master) != new.model_dump(include=master):
        yield Step("kvStore", "settings of its masters", f"masters restart: {empty}")
    if old.store_pods != new.store_pods:
        yield Step("kvStore", "storePods", "store pods are replaced one after the other; each new one starts empty")


def _images(before: Settings, after: Settings) -> Iterator[Step]:
    for name, consequence in _OWN_IMAGES.items():
        if _image(before, name) != _image(after, name):
            yield Step(name, "image", consequence)


def _kthena(before: Settings, after: Settings) -> Iterator[Step]:
    old, new = before.kthena.release, after.kthena.release
    if old == new or not any(model.backend == "kthena" for model in after.models):
        return
    consequence = (
        "upgrade Kthena and its CRDs first; scaling policies are made anew, and ModelServings, ModelServers and "
        "ModelRoutes are changed in place: no engine restarts for it"
    )
    if (old, new) == ("1.0", "0.4"):
        consequence = "0.4 knows fewer fields: downgrade Kthena first, and expect its controller to recreate groups"
    yield Step("kthena", f"release {old} → {new}", consequence)
