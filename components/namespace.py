"""The stack's namespace, with the pod security level that its pods keep."""

from dataclasses import dataclass

import pulumi

from components.context import Context
from components.objects import Manifest, declare
from rules import labels


@dataclass(frozen=True, kw_only=True)
class NamespaceResources:
    """The one child."""

    namespace: pulumi.CustomResource


class Namespace(pulumi.ComponentResource):
    """A namespace labelled with its environment; every namespaced object of the stack is deleted with it."""

    resources: NamespaceResources

    def __init__(
        self, name: str, pod_security: str, context: Context, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("moonstack:cluster:Namespace", name, {"podSecurity": pod_security}, opts)
        self.resources = NamespaceResources(namespace=declare(namespace(context, pod_security), self, context))
        self.register_outputs({"name": self.resources.namespace.id})


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
