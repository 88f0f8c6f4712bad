"""Kthena's limits by release: names, roles, and what a release accepts and ignores.

Source: volcano-sh/kthena v0.4.0 and v1.0.0, CRDs and validating webhooks.
"""

import re
from typing import Final, Literal

from rules import names
from rules.problem import Problem

Release = Literal["0.4", "1.0"]

WORKLOAD: Final = "workload.serving.volcano.sh/v1alpha1"
NETWORKING: Final = "networking.serving.volcano.sh/v1alpha1"
GROUP_LABEL: Final = "modelserving.volcano.sh/group-name"
ROLE_LABEL: Final = "modelserving.volcano.sh/role"
SERVING_LABEL: Final = "modelserving.volcano.sh/name"
ENTRY_LABEL: Final = "modelserving.volcano.sh/entry"
OWNED_PREFIXES: Final = ("modelserving.volcano.sh/", "scheduling.k8s.io/", "scheduling.volcano.sh/", "volcano.sh/")
"""Keys that Kthena and Volcano write on pods: a template's own would overwrite them."""
ROLE_LIMIT: Final = 12
_DNS_1035: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")

KINDS: Final[dict[Release, dict[str, str]]] = {
    "0.4": {
        "ModelServing": WORKLOAD,
        "AutoscalingPolicy": WORKLOAD,
        "AutoscalingPolicyBinding": WORKLOAD,
        "ModelServer": NETWORKING,
        "ModelRoute": NETWORKING,
    },
    "1.0": {
        "ModelServing": WORKLOAD,
        "AutoscalingPolicy": WORKLOAD,
        "ModelServer": NETWORKING,
        "ModelRoute": NETWORKING,
    },
}
"""The kinds that a release serves; AutoscalingPolicyBinding is gone in 1.0."""

IGNORED: Final[dict[Release, tuple[str, ...]]] = {
    "0.4": (
        "ModelServer.spec.trafficPolicy: timeout and retry are stored and never read by the router of 0.4",
        "ModelServer.spec.workloadPort.protocol: the router always speaks plain HTTP to engines",
    ),
    "1.0": ("ModelServer.spec.workloadPort.protocol: the router always speaks plain HTTP to engines",),
}
"""Fields that the API server accepts and the release ignores; shown as notes when such an object is declared."""


def scaler(model: str, role: str = "") -> str:
    """Name of a model's AutoscalingPolicy in 1.0; with a role, of that role's policy and binding in 0.4."""
    return "-".join((names.model_serving(model), *filter(None, (role,))))


def generated_name_fits(path: str, model: str, groups: int, role: str, replicas: int, workers: int) -> list[Problem]:
    """Kthena names pods `<serving>-<group>-<role>-<index>-<worker>`; its webhook wants that within 63 characters."""
    name = f"{names.model_serving(model)}-{groups}-{role}-{replicas}-{workers}"
    if len(name) <= 63 and len(role) <= ROLE_LIMIT and _DNS_1035.fullmatch(name):
        return []
    return [Problem(path, model, f"Kthena would name pods like {name}, over 63 characters", "shorten the model's name")]


def notes(release: Release, groups: int, shape: str) -> list[str]:
    """What the user should know though nothing is wrong: fields without effect, and rollouts that interrupt."""
    found = list(IGNORED[release])
    if shape == "pd" and groups == 1:
        found.append(
            f"Kthena {release} replaces a serving group as a whole and has no surge: with groups: 1 a rollout interrupts the "
            "model; use two groups, or let the fallback channel carry the rollout (volcano-sh/kthena#1188)"
        )
    return found
