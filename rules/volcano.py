"""What Volcano, the scheduler of groups, serves and how it is found.

Source: volcano-sh/volcano, its chart and pkg/scheduler (framework/session.go, plugins/network-topology-aware).
"""

from collections.abc import Collection
from typing import Final, Literal

SCHEDULER: Final = "volcano"
SCHEDULING: Final = "scheduling.volcano.sh/v1beta1"
TOPOLOGY: Final = "topology.volcano.sh/v1alpha1"
HYPER_NODES: Final = "HyperNodes"
ROLE_MINIMUM: Final = "minSubGroups"
"""Of a PodGroup's subGroupPolicy, since 1.14: before, it counts pods, and Kthena's minimum a role comes to a sum."""
SCHEDULER_LABEL: Final = ("app", "volcano-scheduler")
"""On the scheduler's pods, by its chart and by its one-file installation."""


Tiers = Literal["kept", "everywhere", "nowhere"]


def span(tiers: Collection[int], allowed: int) -> Tiers:
    """What it comes to that a group may span HyperNodes of tier `allowed` at most, in a cluster with HyperNodes of these tiers.

    Volcano puts one root above them all, a tier above the highest and at least 1: where that is allowed, so is the whole cluster.
    """
    if max(tiers, default=0) + 1 <= allowed:
        return "everywhere"
    return "kept" if min(tiers) <= allowed else "nowhere"
