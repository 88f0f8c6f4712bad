"""A name for a key that may be shown: the same key gives the same fingerprint everywhere, and nothing leads back."""

import hashlib
import hmac
from typing import Final

_CONSTANT: Final = b"moonstack/key-fingerprint/v1"
"""Public on purpose: it separates our fingerprints from other SHA-256 sums; secrecy rests on the key's own entropy (rules/key_value.py)."""
DIGITS: Final = 32


def fingerprint(value: str) -> str:
    """128 bits of HMAC-SHA-256 of a key, as 32 hex digits.

    Safe to show for keys of at least 128 bits of entropy; `rules.key_value.fault` refuses others first.
    """
    return hmac.new(_CONSTANT, value.encode(), hashlib.sha256).hexdigest()[:DIGITS]
