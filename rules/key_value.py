"""What a usable API key looks like: bare, not a placeholder, and random enough that its fingerprint may be shown."""

import math
import re
from typing import Final

MINIMUM_BITS: Final = 128
"""Below this a fingerprint could be searched for: 2^128 tries are out of reach (NIST SP 800-57, 128-bit strength)."""
MAXIMUM_LENGTH: Final = 4096

_PREFIX: Final = re.compile(r"^[A-Za-z]{2,12}[-_](?:[a-z0-9]{2,8}[-_]){0,3}")
_STAND_IN: Final = re.compile(r"placeholder|redacted|change[-_ ]?me|<.*>|\$\{|x{6}|\*{4}", re.IGNORECASE)
"""What random text has by chance once in a billion keys at most."""
_MARK: Final = re.compile(r"example|dummy|todo|x{4,}|1234(?:5(?:6(?:7(?:8(?:90?)?)?)?)?)?|abcdef|\.{3}", re.IGNORECASE)
"""What a short random key may well hold: `1234` stands in one of 5,000 keys of 16 hex digits."""
_MARK_WORD: Final = re.compile(
    r"(?<![^\W_])(?:example|dummy|todo|your|replace|insert|x{4,}|1234|abcdef)(?![^\W_])|\.{3}", re.IGNORECASE
)
_ALPHABETS: Final = (
    (re.compile(r"[0-9]*"), 10),
    (re.compile(r"[0-9a-f]*|[0-9A-F]*"), 16),
    (re.compile(r"[0-9a-z]*|[0-9A-Z]*"), 36),
)
_WINDOW: Final = 6


def fault(value: str) -> str | None:
    """Why a value can't be an API key, or None; the answer never holds the value.

    The value must be the bare key: the gateway adds `Bearer ` itself and Envoy compares byte by byte.
    """
    if not value:
        return "is empty"
    if value != value.strip() or "\n" in value or "\r" in value:
        return "starts or ends with blanks, or has a line break"
    if value.lower().startswith("bearer"):
        return "carries its own 'Bearer '"
    if value[0] in "\"'`" or value[-1] in "\"'`":
        return "is wrapped in quotes"
    if len(value) > MAXIMUM_LENGTH or not value.isascii() or not value.isprintable() or re.search(r"[\s\"'\\,]", value):
        return (
            f"has blanks, quotes, backslashes, commas, non-ASCII characters, or more than {MAXIMUM_LENGTH} characters"
        )
    if is_placeholder(value):
        return "is a placeholder, not a key"
    if entropy_bits(value) < MINIMUM_BITS:
        return f"has at most {entropy_bits(value):.0f} bits of entropy, {MINIMUM_BITS} are needed"
    return None


def is_placeholder(value: str) -> bool:
    """Whether a text stands for a key instead of being one: sk-xxxx, sk-1234, <your-key>, ${KEY}, changeme.

    A mark such as `1234` or `todo` proves nothing by itself, as it occurs in random keys: it must be a word of its own
    in a text that is no long random one, or marks must be a third of the text, which happens to no random key of 16 characters
    more often than once in a million.
    """
    if _STAND_IN.search(value):
        return True
    body = _PREFIX.sub("", value)
    is_long_and_random = len(body) >= 32 and len(set(body)) >= 12
    if not is_long_and_random and _MARK_WORD.search(value):
        return True
    marked = sum(len(mark[0]) for mark in _MARK.finditer(body))
    return marked > 0 and marked * 3 >= len(body)


def entropy_bits(value: str) -> float:
    """An upper estimate of a key's entropy in bits: what its alphabet allows for the characters that don't repeat earlier text.

    A public prefix such as `sk-` or `sk-ant-api03-` counts nothing; a character counts only
    if the six characters that end with it occur for the first time, so repeated blocks count once.
    """
    body = _PREFIX.sub("", value)
    if not body:
        return 0.0
    alphabet = next((size for pattern, size in _ALPHABETS if pattern.fullmatch(body)), 64)
    windows = {body[end - _WINDOW : end] for end in range(_WINDOW, len(body) + 1)}
    novel = min(len(body), _WINDOW - 1) + len(windows)
    return novel * math.log2(alphabet)
