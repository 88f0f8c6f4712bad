"""Where a rehearsal differs from the stack that it rehearses: all of it here, and all of it printed."""

from collections.abc import Mapping
from typing import Any, Final

from settings.settings import Settings

NAMESPACE: Final = "moonstack-rehearsal"

WHY: Final = {
    "environment": "pre, as prod refuses to go without its gate",
    "cluster": f"the local cluster, namespace {NAMESPACE}",
    "keys": "placeholders",
    "kthena": "pods are scheduled by the default scheduler, one by one, and no controller of Kthena is awaited",
    "gateway": "no load balancer, Gateway or Ingress is awaited",
    "smoke": "no gate: nothing answers on simulated nodes",
}
"""Group → what is other than in the stack."""


def overrides(settings: Settings, groups: Mapping[str, Any]) -> dict[str, Any]:
    """Whole groups in place of the stack's; `groups` are the stack's own, as written in its file."""
    images = settings.cluster.images
    return {
        "environment": "pre",
        "cluster": {
            "namespace": NAMESPACE,
            "kubeconfig": "local",
            "identifier": "moonstack-local",
            "images": images if isinstance(images, str) else dict(images),
        },
        "kthena": {
            **_without(groups.get("kthena"), "topologyTier"),
            "scheduler": "default-scheduler",
            "gang": False,
            "await": False,
        },
        "gateway": {
            **_without(groups.get("gateway"), "loadBalancer", "route", "nodePort"),
            "exposure": "internal",
        },
        "smoke": {**_without(groups.get("smoke")), "gate": False},
    }


def _without(group: Mapping[str, Any] | None, *keys: str) -> dict[str, Any]:
    return {key: value for key, value in (group or {}).items() if key not in keys}
