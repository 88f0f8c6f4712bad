"""The pods of the namespace's engines and gateways, kept up to date by a watch."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from capacity.kube import Kube, KubeError

log = logging.getLogger(__name__)
COMPONENT = "app.kubernetes.io/component"
GATEWAY = "gateway"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


@dataclass(frozen=True, slots=True)
class Pod:
    """What the controller needs to know of a pod."""

    name: str
    uid: str
    ip: str
    ready: bool
    """Ready and not terminating: the only pods that are scraped, reported and counted."""
    labels: Mapping[str, str] = field(default_factory=dict)
    deletion_cost: int = 0

    @property
    def gateway(self) -> bool:
        """Whether this is a gateway; else it is an engine."""
        return self.labels.get(COMPONENT) == GATEWAY

    def matches(self, selector: Mapping[str, str]) -> bool:
        """Whether the pod carries all of the labels."""
        return all(self.labels.get(key) == value for key, value in selector.items())


def pod_of(item: Mapping[str, Any]) -> Pod:
    """A pod from its JSON."""
    meta, status = item["metadata"], item.get("status", {})
    conditions = {c["type"]: c["status"] for c in status.get("conditions", [])}
    cost = (meta.get("annotations") or {}).get(DELETION_COST, "0")
    return Pod(
        name=meta["name"],
        uid=meta["uid"],
        ip=status.get("podIP", ""),
        ready=conditions.get("Ready") == "True" and "deletionTimestamp" not in meta and bool(status.get("podIP")),
        labels=meta.get("labels") or {},
        deletion_cost=int(cost) if cost.lstrip("-").isdigit() else 0,
    )


class PodBook:
    """All pods by name. While the API server is away the last known pods stay."""

    def __init__(self) -> None:
        self._pods: dict[str, Pod] = {}
        self.synced = asyncio.Event()
        self.changes = 0
        """Grows with every change."""

    def get(self, name: str) -> Pod | None:
        """The pod of that name, or None."""
        return self._pods.get(name)

    def all(self) -> Iterable[Pod]:
        """Every known pod."""
        return list(self._pods.values())

    def matching(self, selector: Mapping[str, str]) -> list[Pod]:
        """The pods that carry all of the labels."""
        return [pod for pod in self._pods.values() if pod.matches(selector)]

    def replace(self, pods: Iterable[Pod]) -> None:
        """Forget everything and know these."""
        self._pods = {pod.name: pod for pod in pods}
        self.changes += 1
        self.synced.set()

    def set(self, pod: Pod) -> None:
        """Know a new or changed pod."""
        self._pods[pod.name] = pod
        self.changes += 1

    def drop(self, name: str) -> None:
        """Forget a deleted pod."""
        self._pods.pop(name, None)
        self.changes += 1


async def follow(book: PodBook, kube: Kube, namespace: str, retry: float = 1.0) -> None:
    """Keep the book up to date until cancelled: list, watch, and list again whenever the watch breaks."""
    path, params = f"/api/v1/namespaces/{namespace}/pods", {"labelSelector": f"{COMPONENT} in (engine,{GATEWAY})"}
    while True:
        try:
            listed = await kube.get(path, params)
            book.replace(pod_of(item) for item in listed["items"])
            version = listed["metadata"]["resourceVersion"]
            async for event in kube.watch(path, {**params, "resourceVersion": version}):
                if event["type"] == "ERROR":
                    break
                _note(book, event)
        except KubeError as error:
            log.warning("watching pods: %s", error)
            await asyncio.sleep(retry)


def _note(book: PodBook, event: Mapping[str, Any]) -> None:
    if event["type"] in ("ADDED", "MODIFIED"):
        book.set(pod_of(event["object"]))
    elif event["type"] == "DELETED":
        book.drop(event["object"]["metadata"]["name"])
