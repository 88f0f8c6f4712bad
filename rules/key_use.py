"""When each version of a client key was used last: what the key agent writes down and a rotation reads."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from rules.envoy_keys import version_name

FILE: Final = "usage.json"
"""In the key agent's ConfigMap, beside the day's use."""
LAST_USE: Final = "lastUse"
"""Its member: version (`rules.envoy_keys.version_name`) → moment in ISO 8601, to the minute."""


def last_use(data: Mapping[str, str], key_id: str, value: str) -> datetime | None:
    """When a version was used last according to the ConfigMap's data; None when the agent never saw it in use."""
    moment = json.loads(data.get(FILE) or "{}").get(LAST_USE, {}).get(version_name(key_id, value))
    return datetime.fromisoformat(moment) if moment else None
