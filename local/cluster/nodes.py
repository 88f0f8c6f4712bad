"""What the local node offers beyond its own hardware: chips that it advertises, so that the real scheduler counts them."""

from typing import Any

from local.cluster.api import Api
from local.cluster.layout import NODE, POD_RANGE

DEFAULT_CHIPS = {"huawei.com/Ascend910": 32}
"""What dev requests is 2 prefill pods with 8 chips and a decode pod with 4; the rest is for tests that scale."""


DRIVER_LABELS = {"accelerator": "huawei-Ascend910"}
"""What the device plugin of those chips sets on a node."""


def advertise(api: Api, node: str, resource: str, count: int) -> None:
    """Make the node offer `count` chips of an extended resource."""
    amount = {resource: str(count)}
    api.patch(f"/api/v1/nodes/{node}/status", {"status": {"capacity": amount, "allocatable": amount}})


def prepare(api: Api) -> None:
    """Give the local node its chips and its range of pod addresses, which cannot be changed once set."""
    found = api.get(f"/api/v1/nodes/{NODE}")
    if "podCIDR" not in found["spec"]:
        api.patch(f"/api/v1/nodes/{NODE}", {"spec": {"podCIDR": POD_RANGE, "podCIDRs": [POD_RANGE]}})
    api.patch(f"/api/v1/nodes/{NODE}", {"metadata": {"labels": DRIVER_LABELS}})
    for resource, count in DEFAULT_CHIPS.items():
        if found["status"]["capacity"].get(resource) in (None, "0"):
            advertise(api, NODE, resource, count)


def is_ready(node: dict[str, Any]) -> bool:
    """Whether the node's kubelet reports it ready."""
    conditions = node.get("status", {}).get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def chips(node: dict[str, Any]) -> dict[str, int]:
    """The extended resources that the node offers: those with a domain in their name, huge pages left out."""
    offered = node.get("status", {}).get("allocatable", {})
    return {name: int(count) for name, count in offered.items() if "/" in name}
