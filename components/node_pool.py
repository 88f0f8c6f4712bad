"""Node pools: our labels on nodes where the stack is asked to write them."""

from dataclasses import dataclass

import pulumi
import pulumi_kubernetes as kubernetes

from components.context import Context
from settings.node_pools import NodePoolSettings

FIELD_MANAGER = "moonstack-node-pool"


@dataclass(frozen=True, kw_only=True)
class NodePoolResources:
    """The patches, one a node; none in mode existing."""

    patches: tuple[kubernetes.core.v1.NodePatch, ...]


class NodePool(pulumi.ComponentResource):
    """One pool. Mode `labels` writes our own labels and nothing else; taints are one atomic list and never ours."""

    resources: NodePoolResources

    def __init__(
        self, name: str, args: NodePoolSettings, context: Context, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("moonstack:cluster:NodePool", name, {"settings": args.model_dump(mode="json")}, opts)
        nodes = args.nodes if args.mode == "labels" else ()
        self.resources = NodePoolResources(patches=tuple(self._create_patch(args, node, context) for node in nodes))
        self.register_outputs({"labelled": [patch.id for patch in self.resources.patches]})

    def _create_patch(self, args: NodePoolSettings, node: str, context: Context) -> kubernetes.core.v1.NodePatch:
        metadata = kubernetes.meta.v1.ObjectMetaPatchArgs(
            name=node, labels=args.node_labels(), annotations={"pulumi.com/patchFieldManager": FIELD_MANAGER}
        )
        return kubernetes.core.v1.NodePatch(f"{args.name}-{node}", metadata=metadata, opts=context.opts(self))
