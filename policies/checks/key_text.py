"""No key in clear text anywhere but in the data of a Secret."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from policies.objects import Object
from policies.rule import Facts, Finding, Rule
from policies.unwrap import Text, texts
from rules import key_text

_EXEMPT: Final[Mapping[str, frozenset[str]]] = {
    "Secret": frozenset({"data", "stringData"}),
    "SealedSecret": frozenset({"spec"}),
    "pulumi:providers:kubernetes": frozenset({"kubeconfig"}),
}
"""Where a key may stand: a Secret's data, what is sealed by encryption, and the provider's own credentials (secret in the state)."""
_NOT_OURS: Final = frozenset({"status"})


def no_key_text(one: Object, facts: Facts) -> Iterator[Finding]:
    """Key-like text in any field, also wrapped; a finding names path and kind, never the text."""
    exempt = _EXEMPT.get(one.kind, frozenset()) | _NOT_OURS
    unknown: list[str] = []
    seen: set[str] = set()
    for text in texts({key: value for key, value in one.body.items() if key not in exempt}):
        if text.unknown:
            unknown.append(text.path)
        elif text.path not in seen and (kind := next(kinds(text), None)):
            seen.add(text.path)
            yield Finding(one, text.place(), f"holds {kind}; move it to a Secret and rotate it")
    if unknown:
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        yield Finding(one, unknown[0] + more, "unknown until up, so not searched for keys yet", undecided=True)


def kinds(text: Text) -> Iterator[str]:
    """What a text looks like, if it looks like a key."""
    for found in key_text.find(text.text):
        yield found.kind
    if key_text.names_a_key(text.field) and key_text.looks_random(text.text):
        yield f"a random value in a field named {text.field}"


def holds_key(value: Any) -> bool:
    """Whether anything below a value looks like a key."""
    return any(True for text in texts(value) if not text.unknown for _ in kinds(text))


RULES: Final = (
    Rule(
        id="no-key-text",
        concern="key-hygiene",
        severity="critical",
        description="Key-like text stands nowhere but in the data of a Secret: not in ConfigMaps, env values, arguments, probes, "
        "annotations, labels, custom resources or a Secret's own annotations, nor wrapped in base64, JSON, TOML or YAML.",
        each=no_key_text,
    ),
)
