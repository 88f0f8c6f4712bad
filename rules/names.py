"""Names of Kubernetes objects, all pure functions of the configuration.

A DNS label has at most 63 characters (RFC 1123); Deployments leave room for the pod suffix, so slugs stop at 32.
"""

import hashlib
import re
from typing import Final

SLUG_LIMIT: Final = 32
DEPLOYMENT_LIMIT: Final = 46
"""A pod's name is cut to 58 characters before its random five: `<deployment>-<hash of at most ten>-` must fit, or pods of
two Deployments can't be told apart by name."""
_SLUG: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")

SET_DIGITS: Final = 6
"""Hex digits that tell the sets of one model apart: with the longest slug, `-router` and a dash they just fit DEPLOYMENT_LIMIT."""

PREFILL: Final = "prefill"
DECODE: Final = "decode"
SERVE: Final = "serve"
ROLES: Final = (PREFILL, DECODE, SERVE)

GATEWAY: Final = "gateway"
GATEWAY_PUBLIC: Final = "gateway-public"
GATEWAY_CONFIG: Final = "gateway-envoy"
CONFIG_HEADER: Final = "x-moonstack-config"
"""In every answer of the gateway: the digest of the configuration that it has taken up."""
SERVICE_CONFIG: Final = "gateway-service-config"
CLIENT_KEYS: Final = "gateway-client-keys"
CHANNEL_KEYS: Final = "gateway-channel-keys"
CHANNEL_GATE: Final = "gateway-channel-gate"
GATEWAY_TLS: Final = "gateway-tls"
KV_MASTER: Final = "mooncake-master"
KV_STORE: Final = "mooncake-store"
CAPACITY: Final = "capacity-controller"
CAPACITY_STATE: Final = f"{CAPACITY}-state"
"""The ConfigMap in which the controller keeps what a restart must not lose."""
CAPACITY_STATE_FILE: Final = "state.json"
KEY_AGENT: Final = "key-agent"
SMOKE_LATEST: Final = "smoke-report-latest"
SMOKE_GREEN: Final = "smoke-report-green"
DEPLOYED_CONTENT: Final = "deployed-content"
CONTENT_KEY: Final = "content"
"""The digest's key in that ConfigMap."""


def slug(name: str) -> str:
    """A DNS label for a model name: unchanged when it is one already, else shortened with a digest so that it stays unique."""
    if len(name) <= SLUG_LIMIT and _SLUG.fullmatch(name):
        return name
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    if not plain or not plain[0].isalpha():
        plain = f"m-{plain}".rstrip("-")
    digest = hashlib.sha256(name.encode()).hexdigest()[:6]
    return f"{plain[: SLUG_LIMIT - 7].rstrip('-')}-{digest}"


def engine(model: str, role: str, pool: str, set_id: str = "") -> str:
    """The Deployment of one role of a model on one pool: shortened with a digest where its pods' names would be cut.

    `set_id` tells the sets of a model apart that changes as a whole; it stands last.
    """
    end = _ending(set_id)
    limit = DEPLOYMENT_LIMIT - len(end)
    whole = f"{slug(model)}-{role}-{slug(pool)}"
    if len(whole) <= limit:
        return f"{whole}{end}"
    digest = hashlib.sha256(whole.encode()).hexdigest()[:6]
    tail = f"-{digest}-{role}-{slug(pool)[:12].rstrip('-')}"
    return f"{slug(model)[: limit - len(tail)].rstrip('-')}{tail}{end}"


def warm(model: str, role: str, pool: str) -> str:
    """The Deployment of loaded, unrouted pods beside `engine`."""
    return f"{engine(model, role, pool)}-warm"


def kv_master(protocol: str, preferred: str) -> str:
    """The Mooncake master of one transport: segments of another transport can't be read, so each has a master of its own."""
    return KV_MASTER if protocol == preferred else f"{KV_MASTER}-{protocol}"


def kv_store(protocol: str, preferred: str) -> str:
    """The pods that hold the store's memory of one transport."""
    return KV_STORE if protocol == preferred else f"{KV_STORE}-{protocol}"


def priority(level: str, namespace: str) -> str:
    """The PriorityClass of engines of that level; it has no namespace, so its name tells stacks of one cluster apart."""
    return f"{namespace}-{level}"


def pre_pull(pool: str) -> str:
    """The DaemonSet that keeps engine images on a pool's nodes."""
    return f"pre-pull-{slug(pool)}"


def router(model: str) -> str:
    """The vllm-router Deployment, its ServiceAccount and its Role."""
    return f"{slug(model)}-router"


def router_set(model: str, set_id: str) -> str:
    """The vllm-router Deployment of one set; `router` for a model whose pods change one by one."""
    return f"{router(model)}{_ending(set_id)}"


def router_service(model: str) -> str:
    """The headless Service by which the gateway finds the routers of a model."""
    return f"{slug(model)}-router"


def model_serving(model: str) -> str:
    """Kthena's ModelServing, ModelServer and ModelRoute of a model share this name."""
    return slug(model)


def key_version(key_id: str, fingerprint: str) -> str:
    """The immutable Secret of one version of a key; the fingerprint is public (rules/fingerprint.py)."""
    return f"key-{slug(key_id)}-{fingerprint[:8]}"


def _ending(set_id: str) -> str:
    return f"-{set_id}" if set_id else ""


def cluster_local(service: str, namespace: str) -> str:
    """The DNS name of a Service inside the cluster."""
    return f"{service}.{namespace}.svc.cluster.local"
