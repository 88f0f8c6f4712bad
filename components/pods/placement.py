"""Where engine pods land: near their group, spread over hosts, and in which order when chips are short."""

from typing import Any, Final

from rules import labels

NEAR_WEIGHT: Final = 100


def near_its_group(model_slug: str, topology_key: str | None) -> dict[str, Any] | None:
    """Prefer the domain (rack, spine) where pods of the same model run already.

    Preferred, never required: in tight racks a required podAffinity binds some pods of a group and leaves the rest pending for ever,
    while those hold their chips (measured: 14 of 15 bound).
    """
    if topology_key is None:
        return None
    term = {"labelSelector": {"matchLabels": {labels.MODEL: model_slug}}, "topologyKey": topology_key}
    return {
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": NEAR_WEIGHT, "podAffinityTerm": term}]
        }
    }


def spread_over_hosts(selector: dict[str, str]) -> tuple[dict[str, Any], ...]:
    """One role's pods on different hosts where there is a choice: the end of one host is not the end of the model."""
    return (
        {
            "maxSkew": 1,
            "topologyKey": labels.HOSTNAME,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": dict(selector)},
        },
    )
