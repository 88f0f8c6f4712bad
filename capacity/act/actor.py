"""Writes decisions to the API server."""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from capacity.act.memory import floor_body
from capacity.kube import Kube, KubeError
from capacity.plan.model import Action, Hpa, Route, SetCost, SetFloor
from capacity.pods import DELETION_COST
from capacity.telemetry import Telemetry
from rules import warm_pool

log = logging.getLogger(__name__)
MANAGER = "moonstack-capacity"


class Actor:
    """Each action is one call; one that fails is counted and planned again in the next tick."""

    def __init__(self, kube: Kube, namespace: str, telemetry: Telemetry) -> None:
        self._kube, self._namespace, self._telemetry = kube, namespace, telemetry

    async def hpa(self, name: str) -> Hpa | None:
        """The target's HPA, or None while there is none. Raises KubeError."""
        try:
            found = await self._kube.get(self._hpa_path(name))
        except KubeError as error:
            if error.status == 404:
                return None
            raise
        spec, status = found["spec"], found.get("status", {})
        current = status.get("currentReplicas", 0)
        return Hpa(
            low=spec.get("minReplicas", 1),
            high=spec["maxReplicas"],
            current=current,
            desired=status.get("desiredReplicas", current),
        )

    async def carry_out(self, actions: Iterable[Action]) -> list[Action]:
        """Do all; returns those that were done."""
        done = []
        for action in actions:
            try:
                await self._do(action)
                done.append(action)
            except KubeError as error:
                self._telemetry.action_errors.labels(type(action).__name__).inc()
                log.warning("%s: %s", type(action).__name__, error)
        return done

    async def resize_warm(self, deployment: str, replicas: int) -> None:
        """Set the size of a warm pool. Raises KubeError."""
        path = f"/apis/apps/v1/namespaces/{self._namespace}/deployments/{deployment}/scale"
        await self._kube.patch(path, {"spec": {"replicas": replicas}})

    async def warm_size(self, deployment: str) -> int:
        """The declared size of a warm pool. Raises KubeError."""
        path = f"/apis/apps/v1/namespaces/{self._namespace}/deployments/{deployment}/scale"
        return (await self._kube.get(path))["spec"].get("replicas", 0)

    async def _do(self, action: Action) -> None:
        match action:
            case SetFloor(target, replicas):
                log.info("%s: floor %d", target, replicas)
                await self._kube.apply(
                    self._hpa_path(target), floor_body(self._namespace, target, replicas), manager=MANAGER
                )
            case Route(target, pod, active, reason):
                log.info("%s: %s %s (%s)", target, "activate" if active else "rest", pod.name, reason)
                labels = warm_pool.ACTIVE if active else warm_pool.RESTING
                await self._patch_pod(pod.name, {"uid": pod.uid, "labels": labels})
            case SetCost(pod, cost):
                await self._patch_pod(pod.name, {"uid": pod.uid, "annotations": {DELETION_COST: str(cost)}})

    async def _patch_pod(self, name: str, metadata: Mapping[str, Any]) -> None:
        """The uid guards against another pod that has taken the name meanwhile."""
        await self._kube.patch(f"/api/v1/namespaces/{self._namespace}/pods/{name}", {"metadata": metadata})

    def _hpa_path(self, name: str) -> str:
        return f"/apis/autoscaling/v2/namespaces/{self._namespace}/horizontalpodautoscalers/{name}"
