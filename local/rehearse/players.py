"""What plays the controllers of production that the local cluster lacks, and watches the pods."""

import time
from typing import Any, Final

from local.cluster.api import Api
from local.rehearse.cluster import items, provide_volumes
from local.rehearse.expand import pods_of
from local.rehearse.overrides import NAMESPACE
from settings.settings import Settings

STUCK_SECONDS: Final = 20.0
"""A pod that the scheduler has refused for so long will not be placed: nothing else is coming."""
_SERVINGS: Final = f"/apis/workload.serving.volcano.sh/v1alpha1/namespaces/{NAMESPACE}/modelservings"
_PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"


class Players:
    """What controllers of production do that the local cluster lacks: storage, and Kthena's pods."""

    def __init__(self, api: Api, settings: Settings) -> None:
        self._api = api
        self._settings = settings
        self._expanded: set[str] = set()
        self._refused: dict[str, float] = {}
        self._volumes = False

    @property
    def expanded(self) -> bool:
        """Whether ModelServings were expanded."""
        return bool(self._expanded)

    def act(self) -> None:
        """Play what is due; called once a second."""
        if not items(self._api, f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"):
            return
        if not self._volumes:
            provide_volumes(self._api, self._settings)
            self._volumes = True
        for serving in items(self._api, _SERVINGS):
            if serving["metadata"]["name"] not in self._expanded:
                for pod in pods_of(serving | {"kind": "ModelServing"}):
                    self._api.apply(pod, f"{_PODS}/{pod['metadata']['name']}")
                self._expanded.add(serving["metadata"]["name"])

    def stuck(self, api: Api) -> bool:
        """Whether some pod has been refused by the scheduler for longer than anything is still on its way."""
        now = time.monotonic()
        waiting = {pod["metadata"]["name"] for pod in _pods(api) if _is_refused(pod)}
        self._refused = {name: self._refused.get(name, now) for name in waiting}
        return any(now - since > STUCK_SECONDS for since in self._refused.values())

    def settle(self) -> list[dict[str, Any]]:
        """The pods once the scheduler has had its say on each of them."""
        deadline = time.monotonic() + STUCK_SECONDS
        while time.monotonic() < deadline:
            pods = _pods(self._api)
            if all(pod["spec"].get("nodeName") for pod in pods):
                return pods
            time.sleep(1)
        return _pods(self._api)

    def say(self, api: Api) -> str:
        """How many pods have a node."""
        pods = _pods(api)
        return f"{sum(1 for pod in pods if pod['spec'].get('nodeName'))} of {len(pods)} pods placed"


def _pods(api: Api) -> list[dict[str, Any]]:
    return [pod for pod in items(api, _PODS) if "deletionTimestamp" not in pod["metadata"]]


def _is_refused(pod: dict[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable" for each in conditions)
