"""Where the stack runs: cluster, namespace, images."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from settings.base import DnsLabel, Group, ObjectName
from settings.paths import local_kubeconfig

Environment = Literal["dev", "pre", "prod"]
ClusterScope = Literal["own", "use"]
"""Whether this stack owns the cluster's custom metrics API (its APIService exists once a cluster) or uses another's."""

ImageRef = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][^\s@]*(@sha256:[0-9a-f]{64})?$")]


class ClusterSettings(Group):
    """The cluster that the stack is applied to."""

    namespace: DnsLabel = "moonstack"
    """The stack's namespace; Moonstack declares it."""
    kubeconfig: str | None = None
    """`local` for the local cluster, a path, or empty for the ambient kubeconfig (KUBECONFIG, then ~/.kube/config)."""
    context: str | None = None
    """Context of the kubeconfig; its current one when not given."""
    identifier: str = Field(min_length=1)
    """Identity of the cluster: a new kubeconfig for the same identifier replaces nothing (pulumi-kubernetes#4019)."""
    images: Literal["local"] | dict[str, ImageRef] = "local"
    """`local` for the images built by `make up`, or a reference for each of the image names."""
    image_pull_secret: ObjectName | None = None
    """A Secret of the namespace by which every pod pulls its images."""

    @property
    def kubeconfig_path(self) -> str | None:
        """The kubeconfig's file, also of the local cluster; None for the ambient one."""
        return str(local_kubeconfig()) if self.kubeconfig == "local" else self.kubeconfig
