"""What was used in a day, summed over gateway pods whose counters start again at zero with each pod."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final, Literal, NamedTuple, Self, cast

from rules.envoy_keys import EXHAUSTED

Direction = Literal["prompt", "completion"]
_COUNTER: Final = re.compile(
    r"^envoy_moonstack_(?P<direction>prompt|completion)_tokens\{(?P<tags>[^}]*)\} (?P<value>[0-9.e+]+)", re.MULTILINE
)
_TAG: Final = re.compile(r'(?:^|,)(?P<name>client|served_by|version)="(?P<value>[^"]*)"')


class TokenCount(NamedTuple):
    """One counter of a gateway pod: tokens of a client at a target (`cluster/<model>` or `channel/<model>`)."""

    client: str
    served_by: str
    direction: Direction
    value: float


@dataclass
class Usage:
    """What is known of one day (UTC): the use by meter, and the last reading of each pod's meters."""

    day: date
    used: dict[str, float] = field(default_factory=dict)
    seen: dict[str, dict[str, float]] = field(default_factory=dict)

    def turn(self, today: date) -> None:
        """Begin a new day: use starts at zero, meters go on from where they are."""
        if today != self.day:
            self.day, self.used = today, {}

    def note(self, pod: str, meters: Mapping[str, float], started_today: bool) -> None:
        """Add what a pod's meters counted since it was last seen; a smaller reading is a restarted pod, and counts whole.

        A meter that is read for the first time counts whole if its pod is of today, else from now on:
        what it counted on other days is not this day's.
        """
        before = self.seen.get(pod, {})
        for meter, value in meters.items():
            last = before.get(meter, 0.0 if started_today else value)
            self.used[meter] = self.used.get(meter, 0.0) + (value - last if value >= last else value)
        self.seen[pod] = dict(meters)

    def forget(self, living: set[str]) -> None:
        """Drop the readings of pods that are gone; what they counted stays."""
        self.seen = {pod: meters for pod, meters in self.seen.items() if pod in living}

    def document(self) -> dict[str, Any]:
        """For the ConfigMap."""
        return {"day": self.day.isoformat(), "used": self.used, "seen": self.seen}

    @classmethod
    def restored(cls, document: Mapping[str, Any], today: date) -> Self:
        """From the ConfigMap; an empty or unreadable one begins at zero."""
        try:
            known = cls(date.fromisoformat(document["day"]), dict(document["used"]), dict(document["seen"]))
        except (KeyError, TypeError, ValueError):
            return cls(today)
        known.turn(today)
        return known


def tags_of(text: str) -> dict[str, str]:
    """The tags of a counter that matter here; a client whose tokens are used up goes by its own name."""
    return {tag["name"]: tag["value"].removesuffix(EXHAUSTED) for tag in _TAG.finditer(text)}


def token_counts(page: str) -> Iterator[TokenCount]:
    """The token counters of a gateway's metrics page."""
    for counter in _COUNTER.finditer(page):
        tags = tags_of(counter["tags"])
        if "client" in tags:
            yield TokenCount(
                tags["client"],
                tags.get("served_by", ""),
                cast("Direction", counter["direction"]),
                float(counter["value"]),
            )
