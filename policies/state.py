"""An exported Pulumi state as objects: what is encrypted stays hidden, what isn't is there to be found."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from policies.objects import Object
from policies.rule import Facts, Finding, Rule

ENCRYPTED: Final = "[secret]"
INPUTS: Final = "inputs"
OUTPUTS: Final = "outputs"
_SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
_SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"


def is_state(document: Mapping[str, Any]) -> bool:
    """Whether a document is the output of `pulumi stack export`, or a checkpoint as the backend stores it."""
    return _deployment(document) is not None


def state_objects(document: Mapping[str, Any], source: str = "state") -> Iterator[Object]:
    """Inputs and outputs of every resource, each as an object; `source` ends with which of the two it is."""
    deployment = _deployment(document) or {}
    for resource in deployment.get("resources") or ():
        for part in (INPUTS, OUTPUTS):
            body = hidden(resource.get(part) or {})
            if isinstance(body, Mapping):
                yield Object(
                    body,
                    urn=resource.get("urn", ""),
                    type=resource.get("type", ""),
                    ignored=tuple(resource.get("ignoreChanges") or ()),
                    source=f"{source} {part}",
                )
    rest = {key: hidden(value) for key, value in deployment.items() if key not in ("resources", "secrets_providers")}
    yield Object(rest, type="pulumi:state", source=f"{source} rest")


def hidden(value: Any) -> Any:
    """A value of the state with every encrypted secret replaced by `ENCRYPTED`; one exported in clear text stays visible."""
    if isinstance(value, Mapping):
        if value.get(_SIGNATURE) == _SECRET:
            return json.loads(value["plaintext"]) if "plaintext" in value else ENCRYPTED
        return {key: hidden(item) for key, item in value.items()}
    return [hidden(item) for item in value] if isinstance(value, Sequence) and not isinstance(value, str) else value


def secrets_are_encrypted(one: Object, facts: Facts) -> Iterator[Finding]:
    """The data of a Secret is encrypted in the state, in inputs and outputs alike (pulumi-kubernetes#734)."""
    if one.kind != "Secret" or not one.source.endswith((INPUTS, OUTPUTS)):
        return
    for field in ("data", "stringData"):
        value = one.body.get(field)
        readable = [key for key, item in value.items() if item != ENCRYPTED] if isinstance(value, Mapping) else []
        for key in readable:
            yield Finding(
                one,
                f"{field}.{key}",
                "stands in the state in clear text; wrap it in pulumi.Output.secret, and rotate it",
            )


STATE_RULE: Final = Rule(
    id="encrypted-in-state",
    concern="key-hygiene",
    severity="critical",
    description="The data of every Secret is encrypted in Pulumi's state.",
    each=secrets_are_encrypted,
)


def _deployment(document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    checkpoint = document.get("checkpoint")
    found = checkpoint.get("latest") if isinstance(checkpoint, Mapping) else document.get("deployment")
    return found if isinstance(found, Mapping) else None
