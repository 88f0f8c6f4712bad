"""No key in clear text anywhere but in the data of a Secret."""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any, Final

from policies.compose import composed
from policies.objects import Object
from policies.rule import Facts, Finding, Rule
from policies.unwrap import REMEMBERED, Text, texts
from rules import key_text
from rules.key_names import may_name_a_key

_SECRET: Final = frozenset({"data", "stringData"})
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_PROVIDER: Final = "pulumi:providers:kubernetes"


def no_key_text(one: Object, facts: Facts) -> Iterator[Finding]:
    """Key-like text in any field, also wrapped; a finding names path and kind, never the text."""
    unknown: list[str] = []
    seen: set[str] = set()
    for text in chain(texts(searched(one)), composed(one)):
        if text.unknown:
            unknown.append(text.path)
        elif not _told(seen, text.path) and (kind := next(kinds(text), None)):
            seen.add(text.path)
            yield Finding(one, _without_keys(text), f"holds {kind}; move it to a Secret and rotate it")
    if _is_a_secret(_applied(one)):
        yield Finding(
            one,
            f'metadata.annotations["{_LAST_APPLIED}"]',
            "holds the data of a Secret in clear text; apply it on the server's side, remove the annotation and rotate what was in it",
        )
    if unknown:
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        yield Finding(one, unknown[0] + more, "unknown until up, so not searched for keys yet", undecided=True)


def _applied(one: Object) -> Any:
    """What kubectl noted of the last manifest, if that is known."""
    metadata = one.body.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    return annotations.get(_LAST_APPLIED) if isinstance(annotations, Mapping) else None


def _is_a_secret(applied: Any) -> bool:
    """Whether kubectl wrote down a whole Secret, whatever its values look like."""
    try:
        body = json.loads(applied) if isinstance(applied, str) else None
    except (ValueError, RecursionError):
        return False
    return isinstance(body, dict) and body.get("kind") == "Secret" and any(body.get(field) for field in _SECRET)


def searched(one: Object) -> Mapping[str, Any]:
    """An object without the places where a key may stand: a Secret's data, what is sealed by encryption, and the
    provider's own credentials (secret in the state)."""
    if one.kind == "Secret" and one.group == "":
        return {key: value for key, value in one.body.items() if key not in _SECRET}
    if one.kind == _PROVIDER:
        return {key: value for key, value in one.body.items() if key != "kubeconfig"}
    if one.kind == "SealedSecret" and isinstance(spec := one.body.get("spec"), Mapping):
        return {**one.body, "spec": {key: value for key, value in spec.items() if key != "encryptedData"}}
    return one.body


def kinds(text: Text) -> Iterator[str]:
    """What a text looks like, if it looks like a key."""
    yield from (_known_kinds if len(text.text) <= REMEMBERED else _kinds)(text.text, text.field)


def _kinds(text: str, field: str) -> Iterator[str]:
    typed = key_text.readable(text)
    for form in dict.fromkeys((text, typed)):
        for found in key_text.find(form):
            yield found.kind
    if may_name_a_key(field) and key_text.looks_random(typed):
        yield f"a random value in a field named {field}"


@lru_cache(maxsize=32768)
def _known_kinds(text: str, field: str) -> tuple[str, ...]:
    return tuple(_kinds(text, field))


def _told(seen: set[str], path: str) -> bool:
    """Whether the text there was found already, or one that is a part of it."""
    return path in seen or any(one.startswith(f"{path}[") for one in seen)


def _without_keys(text: Text) -> str:
    """The place, without a key that is itself the name of a field."""
    return key_text.redact(text.place(), "…")


def holds_key(value: Any) -> bool:
    """Whether anything below a value looks like a key."""
    return any(True for text in texts(value) if not text.unknown for _ in kinds(text))


RULES: Final = (
    Rule(
        id="no-key-text",
        concern="key-hygiene",
        severity="critical",
        description="Key-like text stands nowhere but in the data of a Secret: not in ConfigMaps, env values, arguments, probes, "
        "annotations, labels, custom resources or a Secret's own annotations, nor wrapped in base64, base32, hexadecimal, "
        "lists of bytes, archives, escapes, JSON, TOML or YAML, nor in pieces.",
        each=no_key_text,
    ),
)
