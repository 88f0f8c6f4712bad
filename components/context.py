"""What every component needs to know of its stack, passed down explicitly."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from rules import labels


@dataclass(frozen=True, kw_only=True)
class Context:
    """The stack's identity, its one Kubernetes provider, and the images by name."""

    stack: str
    environment: str
    namespace: str
    provider: kubernetes.Provider
    images: Mapping[str, str]
    image_pull_policy: str = "IfNotPresent"
    image_pull_secret: str | None = None
    """The Secret by which every pod of the stack pulls its images."""
    namespace_object: pulumi.Resource | None = None
    """The namespace, once it is declared: namespaced objects wait for it and go with it."""
    ledger: list[Mapping[str, Any]] = field(default_factory=list)
    """Every manifest declared so far, shared by all copies of a stack's context (components/release.py)."""

    def opts(self, parent: pulumi.Resource, **more: Any) -> pulumi.ResourceOptions:
        """Options of a child resource: parent, the stack's provider, and whatever else the resource needs."""
        return pulumi.ResourceOptions(parent=parent, provider=self.provider, **more)

    def namespaced_opts(self, parent: pulumi.Resource, **more: Any) -> pulumi.ResourceOptions:
        """As `opts`, for an object in the stack's namespace: made after it, and deleted with it."""
        if self.namespace_object is None:
            return self.opts(parent, **more)
        needs = [*more.pop("depends_on", []), self.namespace_object]
        return self.opts(parent, depends_on=needs, deleted_with=self.namespace_object, **more)

    def metadata(self, name: str, component: str, **more: Any) -> dict[str, Any]:
        """Object metadata with the recommended labels; `labels` and `annotations` in `more` are merged."""
        own = labels.recommended(name, component, self.stack) | more.pop("labels", {})
        return {"name": name, "namespace": self.namespace, "labels": own, **more}

    def image(self, name: str) -> str:
        """The reference of an image. Raises KeyError with the names that are known."""
        try:
            return self.images[name]
        except KeyError:
            known = ", ".join(sorted(self.images)) or "none"
            raise KeyError(f"moonstack:cluster.images has no {name!r}; known: {known}") from None
