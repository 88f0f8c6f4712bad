"""Tokens of the day by client, summed over gateway pods whose counters start again at zero with each pod."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final, Self

from rules.envoy_keys import EXHAUSTED

_COUNTER: Final = re.compile(r"^envoy_moonstack_(?:prompt|completion)_tokens\{(?P<tags>[^}]*)\} (?P<value>[0-9.e+]+)")
_CLIENT: Final = re.compile(r'(?:^|,)client="(?P<client>[^"]*)"')


@dataclass
class Usage:
    """What is known of one day (UTC): tokens by client, and the last counter of each pod and client."""

    day: date
    tokens: dict[str, float] = field(default_factory=dict)
    seen: dict[str, dict[str, float]] = field(default_factory=dict)

    def turn(self, today: date) -> None:
        """Begin a new day: used tokens start at zero, counters go on from where they are."""
        if today != self.day:
            self.day, self.tokens = today, {}

    def note(self, pod: str, counters: Mapping[str, float]) -> None:
        """Add what a pod counted since it was last seen; a smaller counter is a restarted pod, and counts whole.

        A pod that is seen for the first time counts whole too: it is younger than the agent's memory.
        """
        before = self.seen.get(pod, {})
        for client, value in counters.items():
            last = before.get(client, 0.0)
            self.tokens[client] = self.tokens.get(client, 0.0) + (value - last if value >= last else value)
        self.seen[pod] = dict(counters)

    def forget(self, living: set[str]) -> None:
        """Drop the counters of pods that are gone; their tokens stay counted."""
        self.seen = {pod: counters for pod, counters in self.seen.items() if pod in living}

    def document(self) -> dict[str, Any]:
        """For the ConfigMap."""
        return {"day": self.day.isoformat(), "tokens": self.tokens, "seen": self.seen}

    @classmethod
    def restored(cls, document: Mapping[str, Any], today: date) -> Self:
        """From the ConfigMap; an empty or unreadable one begins at zero."""
        try:
            known = cls(date.fromisoformat(document["day"]), dict(document["tokens"]), dict(document["seen"]))
        except (KeyError, TypeError, ValueError):
            return cls(today)
        known.turn(today)
        return known


def token_counters(page: str) -> dict[str, float]:
    """Tokens in and out by client, from a gateway's metrics page."""
    found: dict[str, float] = {}
    for line in page.splitlines():
        counter = _COUNTER.match(line)
        client = _CLIENT.search(counter["tags"]) if counter else None
        if counter and client:
            name = client["client"].removesuffix(EXHAUSTED)
            found[name] = found.get(name, 0.0) + float(counter["value"])
    return found
