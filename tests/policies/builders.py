"""Objects for the rules' tests: one clean pod, and helpers that bend it."""

import secrets
from typing import Any

from policies.judge import judge
from policies.objects import Object
from policies.rule import Facts, Rule, Violation

PROD = Facts("prod")


def fake_key() -> str:
    """A key-like text, assembled so that no scanner finds one in this repository."""
    return "sk-" + secrets.token_hex(24)


def thing(kind: str, name: str = "thing", *, api: str = "v1", namespace: str = "llm", **body: Any) -> dict[str, Any]:
    """A Kubernetes object."""
    own = body.pop("metadata", {})
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": namespace, **own}, **body}


def container(**more: Any) -> dict[str, Any]:
    """A container that breaks no rule."""
    security = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    return {
        "name": "main",
        "image": "registry.test/app:1.2.3@sha256:" + "0" * 64,
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}},
        "securityContext": security,
        **more,
    }


def pod_spec(*containers: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A pod spec that breaks no rule."""
    security = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    return {
        "automountServiceAccountToken": False,
        "securityContext": security,
        "containers": list(containers) or [container()],
        **more,
    }


def deployment(spec: dict[str, Any] | None = None, name: str = "app", **more: Any) -> dict[str, Any]:
    """A Deployment of such pods, selected by the label app."""
    labels = {"app": name}
    body = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": spec or pod_spec()},
        **more,
    }
    return thing("Deployment", name, api="apps/v1", spec=body)


def found(rule: Rule, *objects: dict[str, Any] | Object, facts: Facts = PROD) -> list[Violation]:
    """What one rule says of objects."""
    return judge([rule], [one if isinstance(one, Object) else Object(one) for one in objects], facts)
