"""Names of fields, variables and flags that hold keys."""

import re
from typing import Final

_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_STAGE: Final = (
    r"s?(?:[_.-]?(?:[0-9]{1,3}|old|new|next|prev(?:ious)?|current|backup|primary|secondary|prod|pre|dev|test"
    r"|value|data|string|text|base))?$"
)
"""A key of several, of a stage, or spelled out: API_KEY_2, apiKey.previous, tokenValue."""
_KEY: Final = re.compile(
    r"(?:^|[^a-z])(?:api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|auth[_-]?key|secret|token|pass(?:word|wd|phrase)"
    r"|credential|authorization|x-api-key|bearer)" + _STAGE
)
_MAYBE: Final = re.compile(r"(?:^|[^a-z])(?:auth|pass|pwd|(?P<of>[a-z]+)[_-]?key)" + _STAGE)
_OPEN: Final = frozenset(
    {
        "block",
        "by",
        "cache",
        "config",
        "dedup",
        "descriptor",
        "foreign",
        "group",
        "hash",
        "header",
        "host",
        "index",
        "kv",
    }
    | {"idempotency", "label", "lookup", "map", "message", "metadata", "metric", "object", "ordering", "partition"}
    | {"prefix", "primary", "public", "range", "routing", "row", "shard", "sort", "unique"}
)
"""Keys that find something instead of opening it."""
_SUM: Final = re.compile(r"(?:^|[^a-z])(?:checksum|hash|digest|sha[0-9]*|fingerprint|etag|uid|uuid)(?:$|[^a-z])")
"""What is computed from a key, and may be shown: checksum/secret, token_sha256."""


def names_a_key(name: str) -> bool:
    """Whether a field or variable of that name would hold a key: apiKey, TAOTOKEN_API_KEY, password2; not secretName, checksum/secret."""
    plain = _plain(name)
    return bool(_KEY.search(plain)) and not _SUM.search(plain)


def may_name_a_key(name: str) -> bool:
    """As `names_a_key`, and names that hold keys often but not always: OPENAI_KEY, master_key, auth; not cache_key, publicKey."""
    plain = _plain(name)
    maybe = _MAYBE.search(plain)
    return names_a_key(name) or (maybe is not None and maybe["of"] not in _OPEN and not _SUM.search(plain))


def _plain(name: str) -> str:
    return _CAMEL.sub("_", name).lower()
