"""Node pools: our labels on nodes where the stack is asked to write them, or a Karpenter NodePool that makes the nodes."""

from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components.context import Context
from components.objects import Manifest, declare
from rules import labels
from rules.chips import CHIPS
from rules.quantity import parse
from settings.node_pools import NodePoolSettings

FIELD_MANAGER = "moonstack-node-pool"


@dataclass(frozen=True, kw_only=True)
class NodePoolResources:
    """Mode labels: the patches, one a node; mode karpenter: its NodePool; mode existing: nothing."""

    patches: tuple[pulumi.CustomResource, ...]
    karpenter: pulumi.CustomResource | None


class NodePool(pulumi.ComponentResource):
    """One pool. Mode `labels` writes our own labels and nothing else; taints are one atomic list and never ours."""

    resources: NodePoolResources

    def __init__(
        self, name: str, args: NodePoolSettings, context: Context, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("moonstack:cluster:NodePool", name, {"settings": args.model_dump(mode="json")}, opts)
        nodes = args.nodes if args.mode == "labels" else ()
        self.resources = NodePoolResources(
            patches=tuple(self._create_patch(args, node, context) for node in nodes),
            karpenter=declare(karpenter_pool(args, context), self, context) if args.mode == "karpenter" else None,
        )
        self.register_outputs({"labelled": [patch.id for patch in self.resources.patches]})

    def _create_patch(self, args: NodePoolSettings, node: str, context: Context) -> pulumi.CustomResource:
        metadata = kubernetes.meta.v1.ObjectMetaPatchArgs(
            name=node, labels=args.node_labels(), annotations={"pulumi.com/patchFieldManager": FIELD_MANAGER}
        )
        return kubernetes.core.v1.NodePatch(f"{args.name}-{node}", metadata=metadata, opts=context.opts(self))


def karpenter_pool(pool: NodePoolSettings, context: Context) -> Manifest:
    """karpenter.sh/v1: as many nodes as `count` at most, with the pool's labels and taints; empty ones go after ten minutes."""
    if pool.node_class_ref is None:
        raise ValueError(f"pool {pool.name}: mode karpenter needs nodeClassRef (settings/checks/placement.py)")
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {
            "name": f"moonstack-{pool.name}",
            "labels": labels.recommended(f"moonstack-{pool.name}", "node-pool", context.stack),
        },
        "spec": {
            "template": {
                "metadata": {"labels": pool.node_labels()},
                "spec": {
                    "nodeClassRef": pool.node_class_ref.model_dump(),
                    "requirements": [{"key": labels.ARCH, "operator": "In", "values": [pool.arch]}],
                    "taints": [taint.taint() for taint in pool.tolerations],
                },
            },
            "limits": _limits(pool),
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "10m"},
        },
    }


def _limits(pool: NodePoolSettings) -> dict[str, Any]:
    """Karpenter bounds a pool by resources: all chips of `count` nodes, or their CPUs where the pool has no chips."""
    stack = CHIPS[pool.chip].stack(pool.driver_stack)
    if stack and stack.resource:
        return {stack.resource: str(pool.count * pool.chips_per_node)}
    return {"cpu": str(int(pool.count * parse(pool.cpu)))}
