"""NetworkPolicies are there, and open nothing that the flow graph doesn't know."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from policies.objects import Object
from policies.rule import UNDECIDED, Facts, Finding, Rule, guarded
from policies.unknown import is_unknown
from rules.network_policy import DEFAULT_DENY
from settings.boundary import network_policies


def policies_are_there(objects: Sequence[Object], facts: Facts) -> Iterator[Finding]:
    """Each namespace with pods denies what isn't allowed: one policy selects all pods, for both directions."""
    policies = [one for one in objects if one.kind == "NetworkPolicy"]
    closed = {one.space for one in policies if _closes_all(one)} - {None}
    unclear = {one.space for one in policies if _is_unclear(one) or one.space is None}
    first: dict[str | None, Object] = {}
    for one in objects:
        if one.pods:
            first.setdefault(one.space, one)
    for one in objects:
        if one.unknown_pods and one.space not in {*first, *closed}:
            yield Finding(one, one.unknown_pods[0], UNDECIDED, undecided=True)
    for namespace, one in sorted(first.items(), key=lambda item: item[0] or ""):
        if namespace in closed:
            continue
        if namespace is None or {namespace, None} & unclear:
            yield Finding(one, "metadata.namespace", UNDECIDED, undecided=True)
            continue
        yield Finding(
            one, "metadata.namespace", f"namespace {namespace} has no NetworkPolicy {DEFAULT_DENY} for all pods"
        )


def within_the_flow_graph(objects: Sequence[Object], facts: Facts) -> Iterator[Finding]:
    """Every NetworkPolicy is one that the flow graph gives: policies add up, so one too many opens the boundary."""
    if facts.settings is None:
        return
    expected = network_policies(facts.settings)
    for one in objects:
        if one.kind == "NetworkPolicy":
            yield from guarded(_as_in_the_graph(one, expected), one)


def nothing_wide_open(one: Object, facts: Facts) -> Iterator[Finding]:
    """No rule lets everybody in or out on every port."""
    if one.kind != "NetworkPolicy":
        return
    spec = one.body["spec"]
    for direction, key in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            if not rule.get(key) or (not rule.get("ports") and _anybody(rule[key])):
                yield Finding(one, f"spec.{direction}[{index}]", "is open for everybody; name peers and ports")


def _anybody(peers: Sequence[Mapping[str, Any]]) -> bool:
    return any((peer.get("ipBlock") or {}).get("cidr") in ("0.0.0.0/0", "::/0") for peer in peers)


def _is_unclear(one: Object) -> bool:
    spec = one.body.get("spec")
    if not isinstance(spec, Mapping):
        return is_unknown(spec)
    return any(is_unknown(spec.get(field)) for field in ("podSelector", "policyTypes"))


def _closes_all(one: Object) -> bool:
    spec = one.body.get("spec")
    if _is_unclear(one) or not isinstance(spec, Mapping):
        return False
    return spec.get("podSelector") == {} and {*spec.get("policyTypes", ())} == {"Ingress", "Egress"}


def _as_in_the_graph(one: Object, expected: Mapping[str, Any]) -> Iterator[Finding]:
    if one.name not in expected:
        yield Finding(one, "metadata.name", "is no policy of the flow graph; add the flow in rules/flow.py instead")
        return
    for field, value in expected[one.name].items():
        found = one.body["spec"].get(field)
        if (found or None) != (value or None):  # the API server leaves empty lists out
            yield Finding(
                one, f"spec.{field}", "differs from the flow graph; change rules/flow.py or moonstack:network instead"
            )


RULES: Final = (
    Rule(
        id="network-policies",
        concern="network",
        severity="high",
        description="Each namespace with pods has NetworkPolicies that deny what isn't allowed.",
        all=policies_are_there,
        relaxed_in_dev=True,
    ),
    Rule(
        id="within-flow-graph",
        concern="network",
        severity="high",
        description="NetworkPolicies open what the flow graph knows, and nothing else.",
        all=within_the_flow_graph,
    ),
    Rule(
        id="nothing-wide-open",
        concern="network",
        severity="high",
        description="No NetworkPolicy lets everybody in or out on every port.",
        each=nothing_wide_open,
    ),
)
