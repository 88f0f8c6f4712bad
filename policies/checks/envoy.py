"""The gateway's Envoy configuration: bounded waits and retries, and the external key where it belongs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import yaml

from policies.objects import Object
from policies.rule import Facts, Finding, Rule
from policies.unknown import Undecided, is_unknown
from policies.unwrap import LOADER

RETRY_LIMIT: Final = 9
"""Ten attempts in total, the largest that moonstack:channel.retry.maxAttempts takes."""
_A_TRY: Final = ("per_try_idle_timeout", "per_try_timeout")
_ENDLESS: Final = re.compile(r"0*(?:\.0*)?s")
"""Zero switches a timeout of Envoy's off."""
_INJECTOR: Final = "envoy.extensions.filters.http.credential_injector.v3.CredentialInjector"
_ASSIGNED: Final = re.compile(r"^--[a-z-]+=")
_LISTENER: Final = "envoy.config.listener.v3.Listener"


def bounded(one: Object, facts: Facts) -> Iterator[Finding]:
    """Retries are few, and no route waits for ever: it has a timeout, or cuts off silence."""
    for path, route in _mappings(one, "route"):
        retries = route.get("retry_policy") or {}
        if int(retries.get("num_retries", 1)) > RETRY_LIMIT:
            yield Finding(
                one, f"{path}.retry_policy.num_retries", f"more than {RETRY_LIMIT} retries multiply an outage's load"
            )
        limits = (route.get("timeout"), route.get("idle_timeout"), *(retries.get(name) for name in _A_TRY))
        if all(_ENDLESS.fullmatch(str(limit or "0s")) for limit in limits):
            yield Finding(one, path, "waits for ever; set timeout or idle_timeout")


def external_key_outside_only(one: Object, facts: Facts) -> Iterator[Finding]:
    """The channel's key is added on the channel's internal listener alone: elsewhere it could reach an engine (envoyproxy/envoy#29318)."""
    for file, document in _documents(one):
        yield from _injectors(one, document, file, inside=False)


def _injectors(one: Object, value: Any, path: str, *, inside: bool) -> Iterator[Finding]:
    if isinstance(value, Mapping):
        if str(value.get("@type", "")).endswith(_LISTENER) or "filter_chains" in value:
            inside = "internal_listener" in value
        if str(value.get("@type", "")).endswith(_INJECTOR) and not inside:
            yield Finding(
                one, path, "adds the external key on a listener that engines are reached by; move it to the channel's"
            )
        for key, item in value.items():
            yield from _injectors(one, item, f"{path}.{key}", inside=inside)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for index, item in enumerate(value):
            yield from _injectors(one, item, f"{path}[{index}]", inside=inside)


def _mappings(one: Object, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for file, document in _documents(one):
        yield from _named(document, name, file)


def _named(value: Any, name: str, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key == name and isinstance(item, Mapping):
                yield f"{path}.{key}", item
            yield from _named(item, name, f"{path}.{key}")
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for index, item in enumerate(value):
            yield from _named(item, name, f"{path}[{index}]")


def _documents(one: Object) -> Iterator[tuple[str, Any]]:
    """What is Envoy's, as it names Envoy's types: files of a ConfigMap, and configuration given as an argument."""
    data = one.body.get("data") if one.kind == "ConfigMap" else None
    given = [(f"data[{file}]", text) for file, text in (data or {}).items()]
    for pod in one.pods:
        for path, container in pod.containers():
            for field in ("command", "args"):
                given += [(f"{path}.{field}[{at}]", text) for at, text in enumerate(container.get(field) or ())]
    for place, text in given:
        if not is_unknown(text) and "type.googleapis.com/envoy." in text:
            try:
                yield place, yaml.load(_ASSIGNED.sub("", text), Loader=LOADER)
            except yaml.YAMLError:
                continue
    if any(is_unknown(text) for _, text in given):
        raise Undecided  # after all that is known: it may be Envoy's


RULES: Final = (
    Rule(
        id="envoy-bounded",
        concern="network",
        severity="medium",
        description="Timeouts and retries of the gateway's routes are bounded.",
        each=bounded,
        reads_pods=True,
    ),
    Rule(
        id="external-key-outside",
        concern="network",
        severity="critical",
        description="The external channel's key is added on the channel's own listener alone.",
        each=external_key_outside_only,
        reads_pods=True,
    ),
)
