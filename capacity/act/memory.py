"""What survives a restart: loads, floors and their renewal, warm pods in service, activations. One ConfigMap."""

import json
import time
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from capacity.kube import Kube, KubeError
from capacity.plan.history import LoadHistory
from rules import names

STATE_KEY = names.CAPACITY_STATE_FILE


class Review(BaseModel):
    """The last weekly review of a warm pool: pods before, as its own week asks for, and as the node pool's budget leaves."""

    at: float
    activations: int
    before: int
    asked: int
    after: int


class TargetMemory(BaseModel):
    """One target; times in seconds since the epoch."""

    floor: int | None = None
    base: int = 1
    renewed: float = 0.0
    """When the controller last stood by the floor."""
    active: int | None = None
    watched: int = 0
    """Minutes since the last review in which the controller looked: a week is as long as it was seen, whatever clocks say."""
    used: int = 0
    """Warm pods put into service under load since the last review."""
    review: Review | None = None


class _State(BaseModel):
    targets: dict[str, TargetMemory] = {}


@dataclass
class Memory:
    """The controller's memory. `dirty` means that something worth saving at once has changed."""

    history_days: int
    targets: dict[str, TargetMemory] = field(default_factory=dict)
    histories: dict[str, LoadHistory] = field(default_factory=dict)
    dirty: bool = False

    def target(self, name: str) -> TargetMemory:
        """What is remembered of a target; a new one starts its week now."""
        return self.targets.setdefault(name, TargetMemory())

    def history(self, name: str) -> LoadHistory:
        """The load history of a target."""
        return self.histories.setdefault(name, LoadHistory(days=self.history_days))

    def note_activation(self, name: str) -> None:
        """Count one warm pod put into service under load."""
        self.target(name).used += 1
        self.dirty = True

    def dump(self) -> dict[str, str]:
        """As the data of a ConfigMap."""
        state = _State(targets=self.targets).model_dump(mode="json")
        return {STATE_KEY: json.dumps(state, separators=(",", ":"))} | {
            f"load.{name}": history.dump() for name, history in self.histories.items()
        }

    def restore(self, data: dict[str, str]) -> None:
        """From the data of a ConfigMap; what can't be read is forgotten."""
        try:
            self.targets = _State.model_validate_json(data.get(STATE_KEY, "{}")).targets
        except ValidationError:
            self.targets = {}
        prefix = "load."
        self.histories = {
            key.removeprefix(prefix): LoadHistory.load(text, self.history_days)
            for key, text in data.items()
            if key.startswith(prefix)
        }


def path(namespace: str) -> str:
    """The ConfigMap; the program creates it empty, so that the controller needs no right to create any."""
    return f"/api/v1/namespaces/{namespace}/configmaps/{names.CAPACITY_STATE}"


async def load(kube: Kube, namespace: str, history_days: int) -> Memory:
    """The memory as saved. Raises KubeError."""
    memory = Memory(history_days)
    memory.restore((await kube.get(path(namespace))).get("data") or {})
    return memory


async def save(kube: Kube, namespace: str, memory: Memory) -> None:
    """Write the memory. Raises KubeError."""
    body: dict[str, Any] = {"data": memory.dump()}
    await kube.patch(path(namespace), body)
    memory.dirty = False


async def expire_floors(kube: Kube, namespace: str, limit_seconds: float, manager: str) -> list[str]:
    """Lower by one every floor that nobody has renewed within the limit; run by a CronJob. Returns lines to log.

    Step by step, since a floor that falls at once escapes the HPA's scale-down policy.
    """
    memory, lines = await load(kube, namespace, history_days=1), []
    for name, target in memory.targets.items():
        if target.floor is None or target.floor <= target.base or time.time() - target.renewed < limit_seconds:
            continue
        hpa = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers/{name}"
        try:
            low = (await kube.get(hpa))["spec"].get("minReplicas", 1)
            if low > target.base:
                await kube.apply(hpa, floor_body(namespace, name, low - 1), manager)
                lines.append(f"{name}: floor {low} not renewed since {target.renewed:.0f}; lowered to {low - 1}")
        except KubeError as error:
            lines.append(f"{name}: {error}")
    return lines


def floor_body(namespace: str, name: str, replicas: int) -> dict[str, Any]:
    """Exactly the one field that is applied: everything else of the HPA belongs to the program."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"minReplicas": replicas},
    }
