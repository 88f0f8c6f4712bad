"""How engines are placed: as a gang by Volcano or each for itself, and what Volcano lacks for it."""

from rules import volcano
from settings.models import ModelSettings
from settings.settings import Settings
from smoke.doctor.diagnosis import Finding
from smoke.preflight.inventory import Inventory, Object, finding, labels_of


def ways(settings: Settings, inventory: Inventory) -> dict[str, str]:
    """Model → who places its engines, and whether a group comes whole."""
    return {model.name: _way(model, settings, inventory) for model in settings.models}


def volcano_is_there(settings: Settings, inventory: Inventory) -> list[Finding]:
    """Pods that name the scheduler volcano stay Pending without it: without its API, and without the scheduler itself."""
    if not _asked(settings):
        return []
    fix = "install Volcano, or set kthena.scheduler to default-scheduler and kthena.gang to false"
    if not inventory.serves(volcano.SCHEDULING, "PodGroup"):
        return [finding("volcano", "error", "cluster", "Volcano's API isn't served: pods would stay Pending", fix)]
    if "pods" in inventory.blind or any(_schedules(pod) for pod in inventory.pods):
        return []
    label = "=".join(volcano.SCHEDULER_LABEL)
    cause = f"no pod labelled {label} is ready: unless Volcano's scheduler runs elsewhere, pods would stay Pending"
    return [finding("volcanoScheduler", "warning", "cluster", cause, "start it: kubectl get pods -A -l " + label)]


def gangs_have_every_role(settings: Settings, inventory: Inventory) -> list[Finding]:
    """Where Volcano counts a gang's pods and not its roles, as many pods of one role as there are roles are a gang."""
    if not _asked(settings) or not settings.kthena.gang or inventory.counts_roles is not False:
        return []
    cause = "this Volcano counts a group's pods, not its roles: a group may start with engines of one role and hold their chips"
    return [finding("volcanoRoles", "warning", "kthena.gang", cause, "upgrade Volcano to 1.14 or newer")]


def groups_keep_to_their_tier(settings: Settings, inventory: Inventory) -> list[Finding]:
    """A group stays within HyperNodes of the tier that it asks for; the tree may let it go anywhere, or nowhere."""
    allowed = settings.kthena.topology_tier
    if allowed is None or not _asked(settings) or volcano.HYPER_NODES in inventory.blind:
        return []
    tiers = sorted({int(each["spec"]["tier"]) for each in inventory.hyper_nodes})
    there = f"HyperNodes have the tiers {', '.join(map(str, tiers))}" if tiers else "the cluster has no HyperNode"
    fix = "make the HyperNodes of your network (kubectl get hypernodes), correct the tier, or remove it"
    match volcano.span(tiers, allowed):
        case "everywhere":
            cause = f"{allowed} keeps nothing together: {there}, so a group may span the whole cluster"
            return [finding("topologyTier", "warning", "kthena.topologyTier", cause, fix)]
        case "nowhere":
            cause = f"{there}, none of {allowed} or lower: groups would stay Pending"
            return [finding("topologyTier", "error", "kthena.topologyTier", cause, fix)]
        case "kept":
            return []


def _asked(settings: Settings) -> bool:
    return settings.kthena.scheduler == volcano.SCHEDULER and any(each.backend == "kthena" for each in settings.models)


def _way(model: ModelSettings, settings: Settings, inventory: Inventory) -> str:
    if model.backend != "kthena" or settings.kthena.scheduler != volcano.SCHEDULER:
        near = " and ".join(_nearness(model, settings))
        return "each engine for itself by the default scheduler" + (near and f", near its group by {near} where it can")
    if not inventory.serves(volcano.SCHEDULING, "PodGroup"):
        return "by nobody: Volcano isn't there"
    tier = settings.kthena.topology_tier
    within = f", within HyperNodes of tier {tier}" if tier is not None else ""
    if not settings.kthena.gang:
        return f"each engine for itself by Volcano{within}"
    whole = (
        "as many pods as one engine of each role has" if inventory.counts_roles is False else "one engine of each role"
    )
    return f"a gang by Volcano: {whole} or none, further ones each for itself{within}"


def _nearness(model: ModelSettings, settings: Settings) -> list[str]:
    if model.shape != "pd":
        return []
    pools = {placement.pool for placements in model.roles().values() for placement in placements}
    return sorted({pool.topology_key for pool in settings.node_pools if pool.name in pools and pool.topology_key})


def _schedules(pod: Object) -> bool:
    key, value = volcano.SCHEDULER_LABEL
    conditions = pod.get("status", {}).get("conditions", ())
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return labels_of(pod).get(key) == value and ready


CHECKS = (volcano_is_there, gangs_have_every_role, groups_keep_to_their_tier)
