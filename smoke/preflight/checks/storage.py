"""Volumes and Secrets that the stack mounts and doesn't make itself."""

from collections.abc import Iterator

from settings.settings import Settings
from smoke.doctor.diagnosis import Finding
from smoke.preflight.inventory import Inventory, finding


def claims_are_bound(settings: Settings, inventory: Inventory) -> list[Finding]:
    """Claims that hold weights exist and are bound."""
    if "claims" in inventory.blind:
        return []
    found = []
    phases = {claim["metadata"]["name"]: claim.get("status", {}).get("phase", "") for claim in inventory.claims}
    for index, model in enumerate(settings.models):
        name = model.weights.location.partition("/")[0]
        if model.weights.source != "pvc" or phases.get(name) == "Bound":
            continue
        cause = f"is {phases[name]}" if name in phases else "doesn't exist"
        fix = f"create it in namespace {settings.cluster.namespace}; models[{index}].weights.location names it"
        found.append(finding("claim", "error", f"persistentvolumeclaim/{name}", cause, fix))
    return found


def secrets_exist(settings: Settings, inventory: Inventory) -> list[Finding]:
    """Secrets that pods name and somebody else makes; only their names are read."""
    if "secrets" in inventory.blind or inventory.namespace is None:
        return []
    return [
        finding("secret", "error", f"secret/{name}", f"doesn't exist, and {owner} names it", "create it")
        for name, owner in sorted(dict(_named(settings)).items())
        if name not in inventory.secrets
    ]


def _named(settings: Settings) -> Iterator[tuple[str, str]]:
    for index, model in enumerate(settings.models):
        if model.weights.credentials_secret:
            yield model.weights.credentials_secret, f"models[{index}].weights.credentialsSecret"
    if settings.cluster.image_pull_secret:
        yield settings.cluster.image_pull_secret, "cluster.imagePullSecret"
    if settings.gateway.tls.source == "secret":
        yield settings.gateway.tls.secret_name, "gateway.tls.secretName"


CHECKS = (claims_are_bound, secrets_exist)
