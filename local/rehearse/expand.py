"""The pods that Kthena would make of a ModelServing, for clusters without Kthena's controller.

Names, labels and variables as volcano-sh/kthena v0.4.0 gives them (pkg/model-serving-controller/utils).
"""

import copy
from collections.abc import Iterator
from typing import Any, Final

from rules import kthena

EXPANDED: Final = "moonstack.dev/expanded"
"""On pods that the rehearsal made in place of Kthena."""


def pods_of(serving: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every pod of a ModelServing: each group, each role, each replica, its entry pod first and then its workers."""
    name, spec = serving["metadata"]["name"], serving["spec"]
    for group in range(spec["replicas"]):
        for role in spec["template"]["roles"]:
            for replica in range(role["replicas"]):
                yield from _engine(serving, f"{name}-{group}", role, replica)


def _engine(serving: dict[str, Any], group: str, role: dict[str, Any], replica: int) -> Iterator[dict[str, Any]]:
    role_id = f"{role['name']}-{replica}"
    entry = f"{group}-{role_id}-0"
    for index in range(role["workerReplicas"] + 1):
        template = role["entryTemplate"] if index == 0 else role["workerTemplate"]
        metadata = serving["metadata"]
        labels = {
            **template["metadata"].get("labels", {}),
            kthena.SERVING_LABEL: metadata["name"],
            kthena.GROUP_LABEL: group,
            kthena.ROLE_LABEL: role["name"],
            "modelserving.volcano.sh/role-id": role_id,
            **({kthena.ENTRY_LABEL: "true"} if index == 0 else {}),
            EXPANDED: "true",
        }
        spec = copy.deepcopy(template["spec"])
        spec["schedulerName"] = serving["spec"]["schedulerName"]
        variables = {
            "GROUP_SIZE": str(role["workerReplicas"] + 1),
            "ENTRY_ADDRESS": f"{entry}.{metadata['namespace']}",
            "WORKER_INDEX": str(index),
        }
        for container in (*spec.get("initContainers", ()), *spec["containers"]):
            kept = [each for each in container.get("env", ()) if each["name"] not in variables]
            container["env"] = [*kept, *({"name": key, "value": value} for key, value in variables.items())]
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{group}-{role_id}-{index}",
                "namespace": metadata["namespace"],
                "labels": labels,
                "annotations": template["metadata"].get("annotations", {}),
            },
            "spec": spec,
        }
