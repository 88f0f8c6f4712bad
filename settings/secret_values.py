"""Encrypted values of a stack file: which of them are none, or belong to no key."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from rules.problem import Problem
from settings.stack_file import NAMESPACE

KEY_VALUE_PREFIX: Final = "keyValue-"
"""`moonstack:keyValue-<id>` are the scalar secrets; they never enter `Settings`."""
_STAGES: Final = ("", ".next", ".previous")
_BASE64: Final = r"[A-Za-z0-9+/]+={0,2}"
_ENCRYPTED: Final = re.compile(rf"v1:{_BASE64}:{_BASE64}")
"""What a passphrase or a cloud's key makes: nonce and text."""
_BY_SERVICE: Final = re.compile(r"[A-Za-z0-9+/]{24,}={0,2}")
"""What Pulumi Cloud makes, whose stack files name no other way to encrypt."""
_OWN_WAY: Final = ("encryptionsalt", "encryptedkey", "secretsprovider")


def clear_values(config: Mapping[str, Any]) -> list[Problem]:
    """Key values that stand in a stack file as they are; the values are not told."""
    return [
        in_clear_text(key)
        for key, value in config.items()
        if _is_key_value(key) and not (isinstance(value, dict) and list(value) == ["secure"])
    ]


def clear_values_in_engine(configured: Iterable[str]) -> list[Problem]:
    """Key values that the running program got and the engine doesn't know as secret, whatever the source of keys."""
    from pulumi.runtime import is_config_secret

    return [in_clear_text(key) for key in configured if _is_key_value(key) and not is_config_secret(key)]


def in_clear_text(key: str) -> Problem:
    """What is said of a key value that nobody encrypted; the value is not told."""
    return Problem(
        key, None, "stands in the stack file in clear text", f"revoke that key; pulumi config set --secret {key}"
    )


def broken_values(document: Mapping[str, Any], config: Mapping[str, Any]) -> list[Problem]:
    """Keys whose `secure:` holds nothing that Pulumi could decrypt: it says `bad value` without the key."""
    shapes = [_ENCRYPTED] if any(way in document for way in _OWN_WAY) else [_ENCRYPTED, _BY_SERVICE]
    return [
        Problem(key, None, "holds nothing under secure that Pulumi encrypted (v1:…)", _set_again(key))
        for key, value in config.items()
        if isinstance(value, dict) and list(value) == ["secure"]
        if not any(isinstance(value["secure"], str) and shape.fullmatch(value["secure"]) for shape in shapes)
    ]


def strange_values(keys: Iterable[str], declared: Collection[str]) -> list[Problem]:
    """Key values whose key is not declared under `keys.keys`: nobody reads them."""
    known = {f"{NAMESPACE}:{KEY_VALUE_PREFIX}{key}{stage}" for key in declared for stage in _STAGES}
    names = ", ".join(declared) or "none"
    return [
        Problem(key, None, f"is the value of no declared key; declared: {names}", f"pulumi config rm {key}")
        for key in keys
        if _is_key_value(key) and key not in known
    ]


def _is_key_value(key: str) -> bool:
    return key.startswith(f"{NAMESPACE}:{KEY_VALUE_PREFIX}")


def _set_again(key: str) -> str:
    return f"pulumi config set --secret {key}"
