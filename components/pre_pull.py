"""Engine images on every node of a pool before a pod needs them: the pull of 10 GB is most of a cold start."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from components.context import Context
from components.objects import Manifest, declare
from components.pods.security import container_security, pod_security
from components.serving_plan import EnginePlan
from rules import labels, names
from settings.node_pools import NodePoolSettings


@dataclass(frozen=True, kw_only=True)
class PrePullArgs:
    """Every engine of the stack; pools of models without `prePull` are left alone."""

    engines: Sequence[EnginePlan]

    def images(self) -> dict[str, tuple[NodePoolSettings, tuple[str, ...]]]:
        """Pool name → the pool, and the images that its nodes keep."""
        wanted: dict[str, tuple[NodePoolSettings, tuple[str, ...]]] = {}
        for plan in self.engines:
            if plan.model.pre_pull:
                _, images = wanted.get(plan.pool.name, (plan.pool, ()))
                wanted[plan.pool.name] = (plan.pool, tuple(dict.fromkeys((*images, plan.pod.build.image))))
        return wanted


@dataclass(frozen=True, kw_only=True)
class PrePullResources:
    """The DaemonSets by pool."""

    daemons: dict[str, pulumi.CustomResource]


class PrePull(pulumi.ComponentResource):
    """One DaemonSet a pool; nothing waits for it, since engines pull for themselves where it hasn't been."""

    resources: PrePullResources

    def __init__(
        self, name: str, args: PrePullArgs, context: Context, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        wanted = args.images()
        super().__init__("moonstack:serving:PrePull", name, {"pools": list(wanted)}, opts)
        daemons = {
            pool.name: declare(daemon_set(pool, images, context), self, context) for pool, images in wanted.values()
        }
        self.resources = PrePullResources(daemons=daemons)
        self.register_outputs({"pools": [each.id for each in daemons.values()]})


def daemon_set(pool: NodePoolSettings, images: Sequence[str], context: Context) -> Manifest:
    """Each image is pulled by an init container that does nothing; the last one then sleeps, so that its image stays in use."""
    name = names.pre_pull(pool.name)
    selector = {"moonstack.dev/part": "pre-pull", labels.POOL: pool.name}
    pulls = [_container(f"image-{index}", image, ["true"]) for index, image in enumerate(images[:-1])]
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": context.metadata(name, "pre-pull", annotations={"pulumi.com/skipAwait": "true"}),
        "spec": {
            "selector": {"matchLabels": selector},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%"}},
            "template": {
                "metadata": {"labels": labels.recommended(name, "pre-pull", context.stack) | selector},
                "spec": {
                    "automountServiceAccountToken": False,
                    "enableServiceLinks": False,
                    "securityContext": pod_security(),
                    "terminationGracePeriodSeconds": 0,
                    "nodeSelector": pool.node_selector(),
                    "tolerations": [taint.toleration() for taint in pool.tolerations],
                    **({"initContainers": pulls} if pulls else {}),
                    "containers": [_container("keep", images[-1], ["sleep", "infinity"])],
                },
            },
        },
    }


def _container(name: str, image: str, command: list[str]) -> dict[str, object]:
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": command,
        "resources": {"requests": {"cpu": "1m", "memory": "8Mi"}, "limits": {"memory": "32Mi"}},
        "securityContext": container_security(),
    }
