"""The key agent's workload and its few rights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pulumi

from capacity.keys.config import AgentConfig
from components.context import Context
from components.objects import Manifest, declare
from components.pods.security import container_security, pod_security
from rules import digest, flow, labels, names

CONFIG_PATH: Final = "/etc/moonstack/key-agent"
_FILE: Final = "config.json"
_CONFIG_MAP: Final = f"{names.KEY_AGENT}-config"


@dataclass(frozen=True, kw_only=True)
class KeyAgentResources:
    """The agent's objects; `usage` holds data that the agent owns."""

    rights: Sequence[pulumi.CustomResource]
    config: pulumi.CustomResource
    usage: pulumi.CustomResource
    deployment: pulumi.CustomResource


class KeyAgent(pulumi.ComponentResource):
    """One pod, off the request path: while it is away, gateways go on with the last list of keys."""

    resources: KeyAgentResources

    def __init__(
        self, name: str, args: AgentConfig, context: Context, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("moonstack:keys:KeyAgent", name, {"config": args.model_dump(mode="json")}, opts)
        rights = [declare(one, self, context) for one in (account(context), role(args, context), binding(context))]
        config = declare(config_map(args, context), self, context)
        usage = declare(usage_map(context), self, context)
        self.resources = KeyAgentResources(
            rights=rights,
            config=config,
            usage=usage,
            deployment=declare(deployment(args, context), self, context, depends_on=[*rights, config, usage]),
        )
        self.register_outputs({"deployment": self.resources.deployment.id})


def account(context: Context) -> Manifest:
    """The agent's own account."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": context.metadata(names.KEY_AGENT, flow.KEY_AGENT),
        "automountServiceAccountToken": False,
    }


def role(config: AgentConfig, context: Context) -> Manifest:
    """Reads the versions by name, writes (and never reads) the gateway's files, keeps its count, nudges pods."""
    versions = sorted(name for key in config.keys for name in key.secrets)
    ending = any(key.outbound and key.expires for key in config.keys)
    written = [names.CLIENT_KEYS, *([names.CHANNEL_KEYS] if ending else [])]
    rules = [
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": versions},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["patch"], "resourceNames": written},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "patch"], "resourceNames": [config.usage]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"], "resourceNames": [names.CHANNEL_GATE]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "patch"]},
    ]
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": context.metadata(names.KEY_AGENT, flow.KEY_AGENT),
        "rules": rules if versions else rules[1:],
    }


def binding(context: Context) -> Manifest:
    """Binds the Role to the account."""
    subject = {"kind": "ServiceAccount", "name": names.KEY_AGENT, "namespace": context.namespace}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": context.metadata(names.KEY_AGENT, flow.KEY_AGENT),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": names.KEY_AGENT},
        "subjects": [subject],
    }


def config_map(config: AgentConfig, context: Context) -> Manifest:
    """What the agent is told: names and times, no value."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": context.metadata(_CONFIG_MAP, flow.KEY_AGENT),
        "data": {_FILE: config.model_dump_json(indent=1)},
    }


def usage_map(context: Context) -> Manifest:
    """What was used in the day: declared without data, which is the agent's own."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": context.metadata(names.KEY_AGENT, flow.KEY_AGENT)}


def deployment(config: AgentConfig, context: Context) -> Manifest:
    """One agent: two would write the same."""
    selector = {"moonstack.dev/part": names.KEY_AGENT}
    own = labels.recommended(names.KEY_AGENT, flow.KEY_AGENT, context.stack) | selector
    annotations = {labels.CONFIG_DIGEST: digest.short(config.model_dump(mode="json"))}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": context.metadata(names.KEY_AGENT, flow.KEY_AGENT),
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": selector},
            "template": {"metadata": {"labels": own, "annotations": annotations}, "spec": _pod_spec(context)},
        },
    }


def _pod_spec(context: Context) -> Mapping[str, Any]:
    return {
        "serviceAccountName": names.KEY_AGENT,
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "securityContext": pod_security(),
        "terminationGracePeriodSeconds": 5,
        "containers": [_container(context)],
        "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "config", "configMap": {"name": _CONFIG_MAP}}],
    }


def _container(context: Context) -> Mapping[str, Any]:
    return {
        "name": "key-agent",
        "image": context.image("capacity"),
        "imagePullPolicy": context.image_pull_policy,
        "command": ["python3", "-m", "capacity.keys"],
        "args": ["--config", f"{CONFIG_PATH}/{_FILE}"],
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": container_security(),
        "volumeMounts": [
            {"name": "tmp", "mountPath": "/tmp"},
            {"name": "config", "mountPath": CONFIG_PATH, "readOnly": True},
        ],
    }
