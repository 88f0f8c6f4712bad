"""Digests of configuration: canonical, short, and safe to show."""

import hashlib
import json
from typing import Any


def canonical(value: Any) -> str:
    """JSON with sorted keys and no blanks: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=str, ensure_ascii=False)


def short(value: Any, digits: int = 16) -> str:
    """The first `digits` hex digits of the SHA-256 of a value's canonical form."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:digits]
