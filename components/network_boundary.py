"""NetworkPolicies around the stack: everything closed, and only the flow graph's directions open."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from components.context import Context
from components.objects import Manifest, declare
from settings.boundary import network_policies
from settings.settings import Settings


@dataclass(frozen=True, kw_only=True)
class NetworkBoundaryResources:
    """The NetworkPolicies by name."""

    policies: Mapping[str, pulumi.CustomResource]


class NetworkBoundary(pulumi.ComponentResource):
    """One NetworkPolicy a part, and one that denies the rest. Pods on the host's network are outside of it.

    Whether the cluster enforces policies at all is for preflight to find out: the API server accepts them in any case.
    """

    resources: NetworkBoundaryResources

    def __init__(
        self, name: str, settings: Settings, context: Context, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        specs = network_policies(settings)
        super().__init__("moonstack:network:NetworkBoundary", name, {"policies": sorted(specs)}, opts)
        self.resources = NetworkBoundaryResources(
            policies={name: declare(policy(name, spec, context), self, context) for name, spec in specs.items()}
        )
        self.register_outputs({"policies": sorted(specs)})


def policy(name: str, spec: Mapping[str, Any], context: Context) -> Manifest:
    """One NetworkPolicy."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": context.metadata(name, "network"),
        "spec": dict(spec),
    }
