"""When each version of a client key was presented last, told from the gateways' counters."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Self

from capacity.keys.usage import tags_of
from rules.key_use import LAST_USE

_COUNTER: Final = re.compile(r"^envoy_moonstack_key_requests\{(?P<tags>[^}]*)\} (?P<value>[0-9.e+]+)", re.MULTILINE)


@dataclass
class LastUse:
    """Moments by version, to the minute, so that they are not written down with every request; counters by pod are not kept.

    A pod's first reading tells nothing: what it counted may be from before a restart of the agent.
    """

    moments: dict[str, str] = field(default_factory=dict)
    seen: dict[str, Mapping[str, float]] = field(default_factory=dict)

    def note(self, pod: str, counters: Mapping[str, float], now: datetime) -> None:
        """Every version that a pod counted more of than before was used now."""
        before = self.seen.get(pod, counters)
        for version, value in counters.items():
            if value != before.get(version, 0.0):
                self.moments[version] = now.replace(second=0, microsecond=0).isoformat()
        self.seen[pod] = counters

    def forget(self, living: set[str], versions: set[str]) -> None:
        """Drop the counters of pods that are gone, and moments of other versions than these."""
        self.seen = {pod: counters for pod, counters in self.seen.items() if pod in living}
        self.moments = {version: moment for version, moment in self.moments.items() if version in versions}

    def document(self) -> dict[str, Any]:
        """For the ConfigMap."""
        return {LAST_USE: dict(self.moments)}

    @classmethod
    def restored(cls, document: Mapping[str, Any]) -> Self:
        """From the ConfigMap."""
        return cls(dict(document.get(LAST_USE) or {}))


def version_counts(page: str) -> dict[str, float]:
    """Requests by version (`<id>@<digits of the fingerprint>`), from a gateway's metrics page."""
    found: dict[str, float] = {}
    for counter in _COUNTER.finditer(page):
        tags = tags_of(counter["tags"])
        name = f"{tags.get('client')}@{tags.get('version')}"
        found[name] = found.get(name, 0.0) + float(counter["value"])
    return found
