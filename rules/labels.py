"""Labels and annotations: Kubernetes' recommended set, and our own few."""

from typing import Final

PREFIX: Final = "moonstack.dev"
MODEL: Final = f"{PREFIX}/model"
ROLE: Final = f"{PREFIX}/role"
POOL: Final = f"{PREFIX}/pool"
CHIP: Final = f"{PREFIX}/chip"
DOMAIN: Final = f"{PREFIX}/domain"
ENVIRONMENT: Final = f"{PREFIX}/environment"
PURPOSE: Final = f"{PREFIX}/purpose"
CONFIG_DIGEST: Final = f"{PREFIX}/config-digest"
KV_IDENTITY: Final = f"{PREFIX}/kv-identity"
REVISION: Final = f"{PREFIX}/revision"
KEY_ID: Final = f"{PREFIX}/key-id"
KEY_FINGERPRINT: Final = f"{PREFIX}/key-fingerprint"
KEY_STAGE: Final = f"{PREFIX}/key-stage"
NOT_BEFORE: Final = f"{PREFIX}/not-before"
EXPIRES: Final = f"{PREFIX}/expires"
KEY_ENDS: Final = f"{PREFIX}/key-ends"
"""On the Secret of the channel's keys: when each of them ends (`rules.key_ends`)."""
OWNER: Final = f"{PREFIX}/owner"
CONSUMER: Final = f"{PREFIX}/consumer"
"""On a Secret: the `app.kubernetes.io/name` of the only workload that may read it; `none` if no workload may."""
ROUTED: Final = f"{PREFIX}/routed"
"""On the pods that routers may pick; outside every workload selector, so that patching it moves no pod between owners."""
SET: Final = f"{PREFIX}/set"
"""On the pods of a model that changes as a whole, and in the selectors of its workloads: which of its sets they belong to."""

NODE_POOL: Final = "gpu.pool"
NODE_NVLINK: Final = "gpu.topology/nvlink"
ARCH: Final = "kubernetes.io/arch"
HOSTNAME: Final = "kubernetes.io/hostname"

OWN_NODE_LABELS: Final = frozenset({NODE_POOL, NODE_NVLINK, CHIP, DOMAIN, POOL})
"""The only node labels Moonstack ever writes; a device plugin's labels are required, never written (pulumi-kubernetes#2750)."""


def recommended(name: str, component: str, stack: str) -> dict[str, str]:
    """`app.kubernetes.io/*` labels for an object of the given component."""
    return {
        "app.kubernetes.io/name": name,
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/part-of": "moonstack",
        "app.kubernetes.io/instance": stack,
        "app.kubernetes.io/managed-by": "pulumi",
    }


def engine_selector(model_slug: str, role: str, pool: str, set_id: str = "") -> dict[str, str]:
    """The immutable selector of an engine Deployment: derived from versions only where its name is too (pulumi-kubernetes#2575)."""
    return {MODEL: model_slug, ROLE: role, POOL: pool, "moonstack.dev/warm-pool": "false"} | of_set(set_id)


def warm_selector(model_slug: str, role: str, pool: str) -> dict[str, str]:
    """The selector of the warm Deployment; disjoint from `engine_selector`."""
    return engine_selector(model_slug, role, pool) | {"moonstack.dev/warm-pool": "true"}


def routed_selector(model_slug: str, role: str, set_id: str = "") -> dict[str, str]:
    """What a router selects: the role's pods that are routed, from whichever Deployment of its own set."""
    return {MODEL: model_slug, ROLE: role, ROUTED: "true"} | of_set(set_id)


def of_set(set_id: str) -> dict[str, str]:
    """The label of a set's pods; none for a model whose pods change one by one."""
    return {SET: set_id} if set_id else {}
