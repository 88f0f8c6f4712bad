"""A role of a ModelServing: Kthena replaces groups as a whole, so what was taken is back when all of the model is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rules.kthena import ENTRY_LABEL, ROLE_LABEL, SERVING_LABEL
from smoke.cluster import Object, ready
from smoke.doctor.facts import condition

Patch = list[dict[str, Any]]
"""A JSON patch (RFC 6902): a merge patch can't reach into the list of roles."""


@dataclass(frozen=True, slots=True)
class ServingRole:
    """Where a drill finds one role's engines, and how it changes them."""

    serving: Object
    role: str

    @property
    def name(self) -> str:
        """The ModelServing's name."""
        return self.serving["metadata"]["name"]

    @property
    def groups(self) -> int:
        """How many times the role is there."""
        return self.serving["spec"]["replicas"]

    @property
    def replicas(self) -> int:
        """Engines of the role in each group."""
        return self._spec["replicas"]

    @property
    def selector(self) -> dict[str, str]:
        """The role's pods that take requests; a multi-node engine has others beside."""
        return {SERVING_LABEL: self.name, ROLE_LABEL: self.role, ENTRY_LABEL: "true"}

    def scaled(self, replicas: int) -> Patch:
        """So many engines in each group."""
        return [{"op": "replace", "path": f"{self._path}/replicas", "value": replicas}]

    def restarted(self, stamp: dict[str, str]) -> Patch:
        """Another revision of the role by an annotation on its pods."""
        annotations = self._spec["entryTemplate"]["metadata"].get("annotations", {}) | stamp
        return [{"op": "add", "path": f"{self._path}/entryTemplate/metadata/annotations", "value": annotations}]

    @property
    def _index(self) -> int:
        return [one["name"] for one in self.serving["spec"]["template"]["roles"]].index(self.role)

    @property
    def _spec(self) -> Object:
        return self.serving["spec"]["template"]["roles"][self._index]

    @property
    def _path(self) -> str:
        return f"/spec/template/roles/{self._index}"


def whole(serving: Object, pods: Sequence[Object]) -> bool:
    """Whether Kthena has seen the last change, says Available, and every pod of every group is Ready and none is left over."""
    seen = serving.get("status", {}).get("observedGeneration") == serving["metadata"]["generation"]
    available = condition(serving, "Available")
    roles = serving["spec"]["template"]["roles"]
    declared = serving["spec"]["replicas"] * sum(one["replicas"] * (1 + one.get("workerReplicas", 0)) for one in roles)
    there = len(pods) == declared and all(ready(pod) for pod in pods)
    return bool(seen and available and available["status"] == "True" and there)
