"""What the capacity controller may do: its account, roles, and the admission policy that holds it to its own labels."""

from typing import Any, Final

from capacity.config import ControllerConfig
from capacity.pods import DELETION_COST
from components.context import Context
from components.objects import Manifest
from rules import labels, names
from rules.warm_pool import READY, WARM

RBAC: Final = "rbac.authorization.k8s.io"
_OWN_LABELS: Final = (labels.ROUTED, WARM, READY)


def rights(config: ControllerConfig, context: Context) -> list[Manifest]:
    """ServiceAccount, Role and binding in the namespace, and the right to read the front proxy's CA."""
    return [_account(context), _role(config, context), _binding(context), _reads_front_proxy(context)]


def _account(context: Context) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": context.metadata(names.CAPACITY, "capacity"),
        "automountServiceAccountToken": False,
    }


def _role(config: ControllerConfig, context: Context) -> Manifest:
    """Named objects wherever Kubernetes can check names; pods can't be named ahead, which the admission policy makes up for."""
    scaled = [target.name for target in config.targets if target.scaled]
    warm = [target.warm for target in config.targets if target.warm]
    rules: list[dict[str, Any]] = [
        _rule("", ["pods"], ["get", "list", "watch", "patch"]),
        _rule("", ["configmaps"], ["get", "patch"], [names.CAPACITY_STATE]),
        _rule("coordination.k8s.io", ["leases"], ["create"]),
        _rule("coordination.k8s.io", ["leases"], ["get", "update"], [names.CAPACITY]),
    ]
    if scaled:
        rules.append(_rule("autoscaling", ["horizontalpodautoscalers"], ["get", "patch"], scaled))
    if warm:
        rules.append(_rule("apps", ["deployments/scale"], ["get", "patch"], warm))
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "Role",
        "metadata": context.metadata(names.CAPACITY, "capacity"),
        "rules": rules,
    }


def _rule(group: str, resources: list[str], verbs: list[str], only: list[str] | None = None) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs} | ({"resourceNames": only} if only else {})


def _binding(context: Context) -> Manifest:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": context.metadata(names.CAPACITY, "capacity"),
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": names.CAPACITY},
        "subjects": [_subject(context)],
    }


def _reads_front_proxy(context: Context) -> Manifest:
    """Kubernetes' own Role for aggregated API servers, in kube-system; the name tells stacks of one cluster apart."""
    name = f"{names.CAPACITY}-{context.namespace}"
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {
            "name": name,
            "namespace": "kube-system",
            "labels": labels.recommended(name, "capacity", context.stack),
        },
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "extension-apiserver-authentication-reader"},
        "subjects": [_subject(context)],
    }


def _subject(context: Context) -> dict[str, str]:
    return {"kind": "ServiceAccount", "name": names.CAPACITY, "namespace": context.namespace}


def admission(context: Context) -> list[Manifest]:
    """A right to patch pods is a right to change their images; this takes all but three labels and one annotation from it."""
    name = f"{names.CAPACITY}-{context.namespace}"
    metadata = {"name": name, "labels": labels.recommended(name, "capacity", context.stack)}
    user = f"system:serviceaccount:{context.namespace}:{names.CAPACITY}"
    return [
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": metadata,
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {
                    "resourceRules": [
                        {
                            "apiGroups": [""],
                            "apiVersions": ["v1"],
                            "operations": ["UPDATE"],
                            "resources": ["pods"],
                        }
                    ]
                },
                "matchConditions": [{"name": "controller", "expression": f"request.userInfo.username == '{user}'"}],
                "validations": [
                    _unchanged("object.spec == oldObject.spec", "the pod's spec"),
                    _unchanged(_same_but("labels", _OWN_LABELS), "labels other than its own"),
                    _unchanged(_same_but("annotations", (DELETION_COST,)), "annotations other than the deletion cost"),
                ],
            },
        },
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": metadata,
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        },
    ]


def _unchanged(expression: str, what: str) -> dict[str, str]:
    return {"expression": expression, "message": f"the capacity controller may not change {what}"}


def _same_but(field: str, own: tuple[str, ...]) -> str:
    """CEL: both maps are equal outside of the own keys; either may be absent."""
    listed = ", ".join(f"'{key}'" for key in own)
    new, old = f"object.metadata.?{field}.orValue({{}})", f"oldObject.metadata.?{field}.orValue({{}})"
    return (
        f"{new}.all(k, k in [{listed}] || (k in {old} && {old}[k] == {new}[k])) && "
        f"{old}.all(k, k in [{listed}] || k in {new})"
    )
