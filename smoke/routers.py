"""Which workers each router knows, against the pods that it should know."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from rules import labels, names
from settings.models import ModelSettings
from smoke.cluster import Object, ready

SELECTOR: Final = {"app.kubernetes.io/component": "router"}
_ADDRESS: Final = re.compile(r"https?://(\[[0-9a-fA-F:]+\]|[\d.]+):\d+")

Workers = Mapping[str, frozenset[str]]
"""Router pod → IP addresses of the workers it knows."""


def addresses(page: str) -> frozenset[str]:
    """The workers' IP addresses on a router's `/workers` page."""
    return frozenset(address.strip("[]") for address in _ADDRESS.findall(page))


def should_know(model: ModelSettings, pods: Iterable[Object], set_id: str = "") -> list[Object]:
    """The Ready, routed engine pods of a model, or of one of its sets."""
    wanted = {labels.MODEL: names.slug(model.name), labels.ROUTED: "true"} | labels.of_set(set_id)
    return [pod for pod in pods if wanted.items() <= pod["metadata"].get("labels", {}).items() and ready(pod)]


def differences(models: Iterable[ModelSettings], pods: Iterable[Object], workers: Workers) -> dict[str, str]:
    """Router pod → what its list lacks or has too much; routers whose list is right are left out."""
    every, found = list(pods), {}
    sets = {pod["metadata"]["name"]: pod["metadata"].get("labels", {}).get(labels.SET, "") for pod in every}
    for model in models:
        for router, known in workers.items():
            if not router.startswith(f"{names.router(model.name)}-"):
                continue
            own = should_know(model, every, sets.get(router, ""))
            wanted = {pod["status"].get("podIP"): pod["metadata"]["name"] for pod in own}
            missing = [name for address, name in wanted.items() if address not in known]
            gone = sorted(known - set(wanted))
            parts = [f"does not know {', '.join(missing)}"] * bool(missing) + [f"still has {', '.join(gone)}"] * bool(
                gone
            )
            if parts:
                found[router] = "; ".join(parts)
    return found
