"""Warm pods: the labels that put one into service, the weekly review, and what the pool costs."""

from typing import Final

from rules import labels

WARM: Final = "warm"
READY: Final = "ready"
REVIEW_DAYS: Final = 7
HOURS_PER_MONTH: Final = 720
"""30 days: 2 pods at 25 yuan an hour are 36,000 yuan a month (B6)."""

ACTIVE: Final[dict[str, str]] = {labels.ROUTED: "true", WARM: "false", READY: "true"}
"""Labels of an activated pod (B5); the router selects on the first alone."""
RESTING: Final[dict[str, str]] = {labels.ROUTED: "false", WARM: "true", READY: "false"}
"""Labels of the warm Deployment's template; an activation is lost on every roll and has to be done again."""


def is_active(pod_labels: dict[str, str]) -> bool:
    """Whether routers may pick the pod."""
    return pod_labels.get(labels.ROUTED) == "true"


def reviewed(replicas: int, activations: int, least: int, low: int, high: int) -> int:
    """Size of the pool after a week with so many activations: the minimum when hardly used, one more when all were (B6)."""
    if activations < least:
        return low
    return min(high, max(low, replicas + (1 if activations > REVIEW_DAYS * replicas else 0)))


def cost_per_month(pods: int, chips: int, chip_cost_per_hour: float) -> float:
    """Yuan a month of `pods` pods with so many chips each."""
    return pods * chips * chip_cost_per_hour * HOURS_PER_MONTH
