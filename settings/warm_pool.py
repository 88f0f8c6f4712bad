"""Loaded pods in hand: how many, when they step in, and what they cost (B5, B6)."""

from pydantic import Field, model_validator

from settings.autoscaling import Role
from settings.base import Group


class WarmPoolSettings(Group):
    """Pods with the model loaded that no router picks until the controller says so."""

    enabled: bool = False
    """Off unless wanted: the pods hold their chips day and night."""
    roles: tuple[Role, ...] = ("prefill", "decode", "serve")
    """Roles that have warm pods."""
    replicas: int = Field(default=2, ge=1, le=10_000)
    """To start with, for each role and pool."""
    min_replicas: int = Field(default=1, ge=1, le=10_000)
    """What the weekly review may shrink it to."""
    max_replicas: int = Field(default=4, ge=1, le=10_000)
    """What the weekly review may grow it to."""
    chips_per_pool: int | None = Field(default=None, ge=1, le=1_000_000)
    """Most chips of one node pool that the warm pods of all models hold together. The weekly review grows those first that
    were needed most often for each warm pod, of equals the model declared first. Default: no limit but `maxReplicas`."""
    review_activations: int = Field(default=3, ge=0, le=1_000_000)
    """Fewer activations in a week shrink the pool to its minimum (B6)."""
    calm_seconds: int = Field(default=60, ge=1, le=86_400)
    """Without a queue for so long, one activated pod goes back to the pool."""

    @model_validator(mode="after")
    def _range(self) -> "WarmPoolSettings":
        if not self.min_replicas <= self.replicas <= self.max_replicas:
            raise ValueError(
                f"replicas {self.replicas} must lie between minReplicas {self.min_replicas} and maxReplicas "
                f"{self.max_replicas}; move the bounds or the start"
            )
        return self
