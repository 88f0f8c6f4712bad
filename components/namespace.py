"""The stack's namespace, with the pod security level that its pods keep."""

from dataclasses import dataclass

import pulumi

from components.context import Context
from components.objects import Manifest, declare
from rules import labels, timing


@dataclass(frozen=True, kw_only=True)
class NamespaceResources:
    """The one child."""

    namespace: pulumi.CustomResource


class Namespace(pulumi.ComponentResource):
    """A namespace labelled with its environment; every namespaced object of the stack is deleted with it.

    `grace` is the longest that one of its pods may take to end, in seconds: the namespace goes after them.
    """

    resources: NamespaceResources

    def __init__(
        self, name: str, pod_security: str, context: Context, opts: pulumi.ResourceOptions | None = None, grace: int = 0
    ) -> None:
        super().__init__("moonstack:cluster:Namespace", name, {"podSecurity": pod_security}, opts)
        self.resources = NamespaceResources(namespace=self._create(pod_security, grace, context))
        self.register_outputs({"name": self.resources.namespace.id})

    def _create(self, pod_security: str, grace: int, context: Context) -> pulumi.CustomResource:
        timeouts = pulumi.CustomTimeouts(delete=f"{timing.removal_seconds(grace)}s")
        return declare(namespace(context, pod_security), self, context, custom_timeouts=timeouts)


def namespace(context: Context, pod_security: str) -> Manifest:
    """The namespace; `pod_security` is a level of the Pod Security Standards."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": context.namespace,
            "labels": labels.recommended(context.namespace, "namespace", context.stack)
            | {
                labels.ENVIRONMENT: context.environment,
                "pod-security.kubernetes.io/enforce": pod_security,
                "pod-security.kubernetes.io/audit": "restricted",
            },
        },
    }
