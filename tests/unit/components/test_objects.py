"""Declared objects reach the engine as pulumi_kubernetes' own classes would register them."""

from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import pytest

from components.objects import declare, owned
from tests.unit.pulumi_engine import deploy, secret

SPEC = {"selector": {"matchLabels": {"a": "b"}}}
KINDS: dict[str, tuple[str, str, Any, dict[str, Any]]] = {
    "ConfigMap": ("v1", "ConfigMap", kubernetes.core.v1.ConfigMap, {"data": {"a": "b"}}),
    "Secret": ("v1", "Secret", kubernetes.core.v1.Secret, {"type": "Opaque", "data": {"a": "Yg=="}}),
    "PodDisruptionBudget": (
        "policy/v1", "PodDisruptionBudget", kubernetes.policy.v1.PodDisruptionBudget, {"spec": SPEC | {"maxUnavailable": 1}},
    ),
    "Role": (
        "rbac.authorization.k8s.io/v1", "Role", kubernetes.rbac.v1.Role,
        {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]},
    ),
    "NetworkPolicy": (
        "networking.k8s.io/v1", "NetworkPolicy", kubernetes.networking.v1.NetworkPolicy,
        {"spec": {"podSelector": {}, "policyTypes": ["Ingress"]}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_is_registered_as_its_own_class_would(kind: str):
    version, name, own_class, body = KINDS[kind]

    def program(context: Any) -> None:
        parent = pulumi.ComponentResource("test:x:Y", "parent")
        metadata = context.metadata("declared", "test")
        declare({"apiVersion": version, "kind": name, "metadata": metadata, **body}, parent, context)
        own_class("own", metadata=owned(metadata), opts=context.namespaced_opts(parent), **body)

    found = {one.name: one for one in deploy(program)}
    assert found["declared"].type == found["own"].type
    assert found["declared"].inputs == found["own"].inputs
    assert secret(found["declared"].inputs.get("data")) == (kind == "Secret")
