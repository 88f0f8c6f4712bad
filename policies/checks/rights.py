"""Rights and the provider: nothing more than needed, and a cluster that can be told from another."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from policies.objects import Object
from policies.rule import Facts, Finding, Rule
from policies.unknown import is_unknown, text

_ADMIN: Final = frozenset({"cluster-admin", "admin", "edit"})
_BECOME: Final = frozenset({"escalate", "bind", "impersonate"})
_PROVIDER: Final = "pulumi:providers:kubernetes"


def no_wildcards(one: Object, facts: Facts) -> Iterator[Finding]:
    """Roles name groups, resources and verbs; nobody is bound to an administrator's role."""
    if one.kind in ("Role", "ClusterRole"):
        rules: Sequence[Mapping[str, Any]] = one.body.get("rules") or ()
        for index, rule in enumerate(rules):
            for field in ("apiGroups", "resources", "verbs", "nonResourceURLs"):
                if any("*" in text(value) for value in rule.get(field) or ()):
                    yield Finding(one, f"rules[{index}].{field}", "is a wildcard; name what is needed")
            if _BECOME & {text(verb) for verb in rule.get("verbs") or ()}:
                yield Finding(one, f"rules[{index}].verbs", "lets its holder become anybody; remove the verb")
    role = text((one.body.get("roleRef") or {}).get("name")) if one.kind.endswith("RoleBinding") else ""
    if role in _ADMIN:
        yield Finding(one, "roleRef.name", f"is {role}; write a role with what is needed")


def cluster_identifier(one: Object, facts: Facts) -> Iterator[Finding]:
    """Without an identifier a new kubeconfig for the same cluster replaces every resource (pulumi-kubernetes#4019)."""
    if one.type == _PROVIDER and not one.body.get("renderYamlToDirectory"):
        given = one.body.get("clusterIdentifier")
        if is_unknown(given):
            yield Finding(one, "clusterIdentifier", "unknown until up", undecided=True)
        elif not given:
            yield Finding(one, "clusterIdentifier", "is missing; set it to moonstack:cluster.identifier")


RULES: Final = (
    Rule(
        id="no-wildcard-rights",
        concern="network",
        severity="high",
        description="No wildcard in roles, and nobody bound to an administrator's role.",
        each=no_wildcards,
    ),
    Rule(
        id="cluster-identifier",
        concern="network",
        severity="high",
        description="The Kubernetes provider has a cluster identifier.",
        each=cluster_identifier,
    ),
)
