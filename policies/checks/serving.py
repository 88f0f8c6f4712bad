"""Engines drain before they are killed, share a KV cache only with their own kind, and can be rolled out."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from policies.checks.chips import RESOURCES
from policies.objects import Object
from policies.rule import Facts, Finding, Rule, guarded
from policies.templates import PodTemplate
from policies.unknown import text
from rules import labels, names
from settings.models import ModelSettings


def grace_covers_the_drain(one: Object, facts: Facts) -> Iterator[Finding]:
    """A pod's grace exceeds its preStop and, for an engine, the longest request on top (volcano-sh/kthena cuts at the grace)."""
    for pod in one.pods:
        sleep = max((_prestop(container) for _, container in pod.containers()), default=0)
        model = _model(pod, facts)
        needed = sleep + (model.longest_request_seconds if model and labels.ROLE in pod.labels else 0)
        grace = int(text(pod.spec.get("terminationGracePeriodSeconds")) or 30)
        if sleep and grace <= needed:
            parts = (
                f"preStop {sleep} s + longest request {needed - sleep} s" if needed > sleep else f"preStop {sleep} s"
            )
            yield Finding(one, f"{pod.path}.terminationGracePeriodSeconds", f"is {grace}; must exceed {parts}")


def sharers_have_one_identity(objects: Sequence[Object], facts: Facts) -> Iterator[Finding]:
    """Engines of one model and revision have one KV identity, and no other has the same: Mooncake's keys hold no weights digest."""
    owners: dict[str, tuple[str, str]] = {}
    identities: dict[tuple[str, str], str] = {}
    for one in objects:
        yield from guarded(_identity(one, owners, identities), one)


def rollout_fits(objects: Sequence[Object], facts: Facts) -> Iterator[Finding]:
    """A rollout that surges finds free chips in its pool: else the new pod stays Pending and the rollout never ends."""
    if facts.settings is None:
        return
    deployments = [one for one in objects if one.kind == "Deployment"]
    used: dict[str, int] = {}
    for one in deployments:
        yield from guarded(_count(one, used), one)
    for one in deployments:
        yield from guarded(_surge(one, used, facts), one)


def _prestop(container: Mapping[str, Any]) -> int:
    hook = (container.get("lifecycle") or {}).get("preStop") or {}
    return int(text((hook.get("sleep") or {}).get("seconds")) or 0)


def _model(pod: PodTemplate, facts: Facts) -> ModelSettings | None:
    slug = text(pod.labels.get(labels.MODEL))
    models = facts.settings.models if facts.settings else ()
    return next((model for model in models if names.slug(model.name) == slug), None)


def _identity(
    one: Object, owners: dict[str, tuple[str, str]], identities: dict[tuple[str, str], str]
) -> Iterator[Finding]:
    for pod in one.pods:
        if labels.KV_IDENTITY not in pod.annotations:
            continue
        identity = text(pod.annotations[labels.KV_IDENTITY])
        sharer = (text(pod.labels.get(labels.MODEL)), text(pod.labels.get(labels.REVISION)))
        path = f'{pod.path.removesuffix(".spec")}.metadata.annotations["{labels.KV_IDENTITY}"]'
        if identities.setdefault(sharer, identity) != identity:
            yield Finding(one, path, f"differs from that of other engines of {sharer[0]}: they would share nothing")
        if owners.setdefault(identity, sharer) != sharer:
            yield Finding(one, path, f"is that of model {owners[identity][0]} too: they would read each other's KV")


def _count(one: Object, used: dict[str, int]) -> Iterator[Finding]:
    pool, chips = _chips(one)
    used[pool] = used.get(pool, 0) + chips * int(text(one.body["spec"].get("replicas")) or 1)
    yield from ()


def _surge(one: Object, used: Mapping[str, int], facts: Facts) -> Iterator[Finding]:
    name, chips = _chips(one)
    pool = next((pool for pool in (facts.settings.node_pools if facts.settings else ()) if pool.name == name), None)
    rolling = (one.body["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    surge = text(rolling.get("maxSurge", 1))
    if pool is None or not chips or not surge.isdigit() or text(rolling.get("maxUnavailable", 0)) != "0":
        return
    total = (len(pool.nodes) or pool.count) * pool.chips_per_node
    if used.get(name, 0) + int(surge) * chips > total:
        room = f"pool {name} has {total} chips, {used.get(name, 0)} in use, and a surge needs {int(surge) * chips}"
        yield Finding(
            one, "spec.strategy.rollingUpdate", f"{room}; allow maxUnavailable 1 with maxSurge 0, or enlarge the pool"
        )


def _chips(one: Object) -> tuple[str, int]:
    pool, chips = "", 0
    for pod in one.pods:
        pool = text((pod.spec.get("nodeSelector") or {}).get(labels.POOL))
        for _, container in pod.containers():
            limits = (container.get("resources") or {}).get("limits") or {}
            chips += sum(int(text(limits[resource])) for resource in RESOURCES & set(limits))
    return pool, chips


RULES: Final = (
    Rule(
        id="grace-covers-drain",
        concern="serving",
        severity="high",
        description="terminationGracePeriodSeconds exceeds preStop and the longest request.",
        each=grace_covers_the_drain,
        reads_pods=True,
    ),
    Rule(
        id="kv-identity",
        concern="serving",
        severity="critical",
        description="Engines that share a KV cache have one identity, all others another.",
        all=sharers_have_one_identity,
        reads_pods=True,
    ),
    Rule(
        id="rollout-fits",
        concern="serving",
        severity="medium",
        description="A rollout that surges finds free chips in its pool.",
        all=rollout_fits,
        reads_pods=True,
        relaxed_in_dev=True,
    ),
)
