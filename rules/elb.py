"""Huawei Cloud's ELB as CCE's controller makes it: the annotations that ask for one, and what is missing in them.

Names, values and what a public one needs: Huawei CCE's user guide, "Configuring Advanced Load Balancing Functions Using Annotations".
"""

import json
from collections.abc import Mapping
from typing import Any, Final

ID: Final = "kubernetes.io/elb.id"
"""An ELB that is there already; whether it has a public address is its own affair."""
AUTOCREATE: Final = "kubernetes.io/elb.autocreate"
"""JSON text of an ELB to be made."""
INSIDE: Final = "inner"
OUTSIDE: Final = "public"
FOR_PUBLIC: Final = ("bandwidth_name", "bandwidth_size", "bandwidth_sharetype", "eip_type")


def wanted(annotations: Mapping[str, str]) -> dict[str, Any] | None:
    """The ELB to be made; none where none is asked for. Raises ValueError for what is not a JSON object."""
    text = annotations.get(AUTOCREATE)
    if text is None:
        return None
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON ({error.msg} at character {error.pos})") from None
    if not isinstance(found, dict):
        raise ValueError("is not a JSON object")
    return found


def kind(internal: bool) -> str:
    """The `type` of an ELB with an address inside the network only, or with a public one."""
    return INSIDE if internal else OUTSIDE


def made(annotations: Mapping[str, str], internal: bool) -> dict[str, str]:
    """The annotation with the type written out, as the controller's default is an address inside. Raises ValueError."""
    balancer = wanted(annotations)
    return {} if balancer is None else {AUTOCREATE: json.dumps({"type": kind(internal), **balancer})}
