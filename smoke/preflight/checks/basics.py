"""The API server's version, the caller's rights, the namespace, its quotas, and whether NetworkPolicies are enforced."""

import re
from typing import Final

from rules.chips import CHIPS
from rules.quantity import parse
from settings.capacity_plan import role_plans
from settings.settings import Settings
from smoke.doctor.diagnosis import Finding
from smoke.preflight.inventory import Inventory, finding, labels_of

OLDEST: Final[tuple[int, int]] = (1, 30)
"""preStop sleep is on by default from here (KEP-3960); sidecars since 1.29 (KEP-753)."""
IMAGE_VOLUMES: Final[tuple[int, int]] = (1, 33)
"""Image volumes are beta from here (KEP-4639)."""
ENFORCERS: Final = (
    "calico",
    "cilium",
    "kube-router",
    "antrea",
    "weave",
    "canal",
    "kube-ovn",
    "aws-node",
    "yangtse",
    "everest",
)
PLACEHOLDER: Final = f"@sha256:{'0' * 64}"


def version_is_new_enough(settings: Settings, inventory: Inventory) -> list[Finding]:
    """The API server knows every field that is written."""
    found = _release(inventory.version)
    if found < OLDEST:
        cause = f"Kubernetes {inventory.version} is older than 1.30 and drops preStop.sleep: requests are lost at every stop"
        return [finding("version", "error", "cluster", cause, "upgrade the cluster")]
    if found < IMAGE_VOLUMES and any(model.weights.source == "image" for model in settings.models):
        cause = f"Kubernetes {inventory.version} has no image volumes, and a model's weights are in an image"
        return [finding("version", "error", "cluster", cause, "upgrade to 1.33, or use another weights.source")]
    return []


def _release(version: str) -> tuple[int, int]:
    """Major and minor; a version that says neither is taken for the newest."""
    match = re.match(r"v?(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else (2**31, 0)


def rights_suffice(settings: Settings, inventory: Inventory) -> list[Finding]:
    """The caller may do what `up` does."""
    return [
        finding(
            "rights",
            "error",
            settings.cluster.namespace,
            f"you may not {denied}",
            "ask for the Role of docs/operations.md",
        )
        for denied in inventory.denied
    ]


def nothing_is_unseen(settings: Settings, inventory: Inventory) -> list[Finding]:
    """What couldn't be read is said, not taken for absent."""
    return [
        finding("blind", "warning", what, "could not be read, so it is not checked", "grant get and list on it")
        for what in inventory.blind
    ]


def namespace_takes_the_pods(settings: Settings, inventory: Inventory) -> list[Finding]:
    """An existing namespace doesn't refuse host folders that a chip needs."""
    if inventory.namespace is None:
        return []
    level = labels_of(inventory.namespace).get("pod-security.kubernetes.io/enforce")
    ours = labels_of(inventory.namespace).get("app.kubernetes.io/part-of") == "moonstack"
    needing = [CHIPS[pool.chip].title for pool in settings.node_pools if pool.chip in CHIPS and CHIPS[pool.chip].mounts]
    if ours or not needing or level in (None, "privileged"):
        return []
    name = settings.cluster.namespace
    cause = f"the namespace enforces pod security {level}, and {needing[0]} needs files of the host"
    return [finding("podSecurity", "error", f"namespace/{name}", cause, "use a namespace of the stack's own")]


def quotas_hold_the_chips(settings: Settings, inventory: Inventory) -> list[Finding]:
    """No ResourceQuota of the namespace is below what the stack asks for."""
    wanted: dict[str, int] = {}
    pools = {pool.name: pool for pool in settings.node_pools}
    for plan in role_plans(settings):
        pool = pools[plan.placement.pool]
        stack = CHIPS[pool.chip].stack(pool.driver_stack)
        if stack and stack.resource:
            wanted[stack.resource] = wanted.get(stack.resource, 0) + plan.declared * plan.placement.chips
    return [
        finding(
            "quota",
            "error",
            f"resourcequota/{quota['metadata']['name']}",
            f"allows {hard} {resource}, and the stack asks for {wanted[resource]}",
            "raise the quota, or lower replicas",
        )
        for quota in inventory.quotas
        for key, hard in quota.get("spec", {}).get("hard", {}).items()
        if (resource := key.removeprefix("requests.")) in wanted and parse(hard) < wanted[resource]
    ]


def policies_are_enforced(settings: Settings, inventory: Inventory) -> list[Finding]:
    """The API server takes NetworkPolicies in any case; a network plugin has to enforce them: an error where the stack counts on it."""
    if any(part in name for name in inventory.network_agents for part in ENFORCERS) or "DaemonSets" in inventory.blind:
        return []
    severity = "error" if settings.network.enabled and settings.network.enforced else "warning"
    cause = "no network plugin that enforces NetworkPolicies was found among the system's DaemonSets"
    fix = "install one (Calico, Cilium, kube-router …); until then every pod can reach every other"
    return [finding("networkPolicies", severity, "cluster", cause, fix)]


def checksums_are_real(settings: Settings, inventory: Inventory) -> list[Finding]:
    """The stack file's placeholder checksums of weights have been replaced: with one, no pod ever passes its fetcher."""
    fix = "give the SHA-256 of the prefix's file SHA256SUMS (`sha256sum SHA256SUMS`)"
    return [
        finding("checksums", "error", f"models[{index}].weights.checksums", "is a placeholder of zeros", fix)
        for index, model in enumerate(settings.models)
        if model.weights.checksums == "0" * 64
    ]


def images_are_real(settings: Settings, inventory: Inventory) -> list[Finding]:
    """The stack file's placeholder digests have been replaced."""
    images = settings.cluster.images
    return [
        finding("images", "error", f"cluster.images.{name}", "has a placeholder digest", "run `make images REGISTRY=…`")
        for name, reference in (images.items() if isinstance(images, dict) else ())
        if reference.endswith(PLACEHOLDER)
    ]


CHECKS = (
    version_is_new_enough,
    rights_suffice,
    nothing_is_unseen,
    namespace_takes_the_pods,
    quotas_hold_the_chips,
    policies_are_enforced,
    images_are_real,
    checksums_are_real,
)
