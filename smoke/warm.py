"""The warm pool's week, as the capacity controller remembers it: for the report."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from rules import names
from rules.warm_pool import REVIEW_DAYS
from smoke.cluster import Cluster
from smoke.errors import SmokeError

STATE_KEY: Final = names.CAPACITY_STATE_FILE


class LastReview(BaseModel):
    """What the last review found and did; `at` in seconds since the epoch, the rest in pods."""

    model_config = ConfigDict(frozen=True)

    at: float
    activations: int
    before: int
    asked: int
    after: int

    def line(self) -> str:
        """For people; says so where the chips that models share left less than the week asked for."""
        short = f", {self.asked} asked for and the shared chips left {self.after}" if self.after < self.asked else ""
        day = datetime.fromtimestamp(self.at, UTC)
        return f"{day:%Y-%m-%d}: {self.activations} activations, {self.before} → {self.after} warm pods{short}"


class WarmWeek(BaseModel):
    """One warm pool's week so far."""

    model_config = ConfigDict(frozen=True)

    target: str
    activations: int
    days: float
    """Since the last review, as far as the controller looked."""
    review: LastReview | None = None

    def line(self) -> str:
        """For people."""
        last = self.review.line() if self.review else "not reviewed yet"
        return f"{self.activations} activations in {self.days:.1f} of {REVIEW_DAYS} days; last review {last}"


async def warm_weeks(cluster: Cluster) -> tuple[WarmWeek, ...]:
    """Every warm pool's week; empty where the controller has no memory yet or it can't be read."""
    try:
        state = await cluster.get(cluster.path("configmaps", names.CAPACITY_STATE))
    except SmokeError:
        return ()
    return weeks_of((state or {}).get("data") or {})


def weeks_of(data: Mapping[str, Any]) -> tuple[WarmWeek, ...]:
    """From the data of the controller's ConfigMap."""
    try:
        targets = json.loads(data.get(STATE_KEY, "{}")).get("targets", {})
        return tuple(
            WarmWeek(
                target=name,
                activations=kept["used"],
                days=round(kept["watched"] / 1440, 2),
                review=LastReview.model_validate(kept["review"]) if kept.get("review") else None,
            )
            for name, kept in sorted(targets.items())
            if kept.get("watched") or kept.get("review")
        )
    except (ValueError, KeyError, AttributeError, TypeError, ValidationError):
        return ()
