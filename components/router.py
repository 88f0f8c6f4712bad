"""vllm-router in front of one model: finds prefill and decode pods by label, and pairs them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pulumi

from components.context import Context
from components.disruption import disruption_budget
from components.objects import Manifest, declare
from components.pods.security import container_security, pod_security
from rules import labels, names, ports, timing
from settings.models import ModelSettings


@dataclass(frozen=True, kw_only=True)
class RouterArgs:
    """The model, and for one that changes as a whole: its set, and the set's engines, which are there before and after its routers."""

    model: ModelSettings
    set_id: str = ""
    engines: Sequence[pulumi.Resource] = ()


@dataclass(frozen=True, kw_only=True)
class RouterResources:
    """The routers' objects."""

    account: pulumi.CustomResource
    role: pulumi.CustomResource
    binding: pulumi.CustomResource
    service: pulumi.CustomResource
    deployment: pulumi.CustomResource
    budget: pulumi.CustomResource


class Router(pulumi.ComponentResource):
    """Two or more vllm-routers with Kubernetes discovery, the right to watch this namespace's pods, and a Service.

    The Service has one name whatever set it selects, so that gateways keep their configuration; it moves once the set's routers are Ready.
    """

    resources: RouterResources

    def __init__(
        self, name: str, args: RouterArgs, context: Context, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        model, set_id = args.model, args.set_id
        super().__init__("moonstack:serving:Router", name, {"model": model.name, "shape": model.shape}, opts)
        account = declare(service_account(model, context), self, context)
        role = declare(role_of(model, context), self, context)
        binding = declare(role_binding(model, context), self, context)
        needs = [account, role, binding, *args.engines]
        routers = declare(deployment(model, context, set_id), self, context, depends_on=needs)
        budget = disruption_budget(
            names.router_set(model.name, set_id), "router", router_selector(model, set_id), context
        )
        self.resources = RouterResources(
            account=account,
            role=role,
            binding=binding,
            service=declare(service(model, context, set_id), self, context, depends_on=[routers] if set_id else []),
            deployment=routers,
            budget=declare(budget, self, context),
        )
        self.register_outputs({"deployment": self.resources.deployment.id})


def service_account(model: ModelSettings, context: Context) -> Manifest:
    """The routers' own account; its token is mounted by the routers alone."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": context.metadata(names.router(model.name), "router"),
        "automountServiceAccountToken": False,
    }


def role_of(model: ModelSettings, context: Context) -> Manifest:
    """Discovery needs to list and watch pods of this namespace, and nothing else."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": context.metadata(names.router(model.name), "router"),
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}],
    }


def role_binding(model: ModelSettings, context: Context) -> Manifest:
    """Binds the Role to the routers' account."""
    name = names.router(model.name)
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": context.metadata(name, "router"),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": context.namespace}],
    }


def service(model: ModelSettings, context: Context, set_id: str = "") -> Manifest:
    """Headless, so that the gateway sees each router and fails over between them."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": context.metadata(names.router_service(model.name), "router"),
        "spec": {
            "clusterIP": "None",
            "selector": router_selector(model, set_id),
            "ports": [
                {"name": "http", "port": ports.ROUTER, "targetPort": "http"},
                {"name": "metrics", "port": ports.ROUTER_METRICS, "targetPort": "metrics"},
            ],
        },
    }


def router_selector(model: ModelSettings, set_id: str = "") -> dict[str, str]:
    """The routers' immutable selector; disjoint from every engine's."""
    return {"moonstack.dev/part": "router", labels.MODEL: names.slug(model.name)} | labels.of_set(set_id)


def router_arguments(model: ModelSettings, namespace: str, set_id: str = "") -> list[str]:
    """vllm-router's arguments. Store-based sharing needs no transfer parameters, so its `nixl` dialogue is harmless.

    With prefill and decode apart its retries and circuit breaker do nothing (measured): a failing engine is left out by its health alone.
    """
    slug = names.slug(model.name)
    args = ["--host", "0.0.0.0", "--port", str(ports.ROUTER)]
    if model.shape == "pd":
        args += ["--vllm-pd-disaggregation", "--kv-connector", "nixl"]
        args += ["--prefill-selector", *_selector(labels.routed_selector(slug, names.PREFILL, set_id))]
        args += ["--decode-selector", *_selector(labels.routed_selector(slug, names.DECODE, set_id))]
    else:
        args += ["--selector", *_selector(labels.routed_selector(slug, names.SERVE, set_id))]
    return [
        *args,
        "--service-discovery",
        "--service-discovery-namespace", namespace,
        "--service-discovery-port", str(ports.ENGINE),
        "--policy", model.router.policy,
        "--prometheus-host", "0.0.0.0",
        "--prometheus-port", str(ports.ROUTER_METRICS),
        "--health-check-interval-secs", str(timing.READINESS_PERIOD_SECONDS),
        "--health-failure-threshold", str(timing.READINESS_FAILURES),
        "--health-success-threshold", "1",
        "--request-timeout-secs", str(model.longest_request_seconds),
    ]  # fmt: skip


def deployment(model: ModelSettings, context: Context, set_id: str = "") -> Manifest:
    """The routers; ready only when both roles have a worker (`/readiness`, not `/health`)."""
    selector = router_selector(model, set_id)
    name = names.router_set(model.name, set_id)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": context.metadata(name, "router"),
        "spec": {
            "replicas": model.router.replicas,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "progressDeadlineSeconds": timing.STARTUP_FLOOR_SECONDS,
            "selector": {"matchLabels": selector},
            "template": {
                "metadata": {"labels": labels.recommended(name, "router", context.stack) | selector},
                "spec": _pod_spec(model, context, set_id),
            },
        },
    }


def _pod_spec(model: ModelSettings, context: Context, set_id: str) -> dict[str, Any]:
    return {
        "serviceAccountName": names.router(model.name),
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "securityContext": pod_security(),
        "terminationGracePeriodSeconds": timing.router_grace_seconds(model.longest_request_seconds),
        "topologySpreadConstraints": [_spread(router_selector(model, set_id))],
        "containers": [_router_container(model, context, set_id)],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }


def _router_container(model: ModelSettings, context: Context, set_id: str) -> dict[str, Any]:
    return {
        "name": "router",
        "image": context.image("router"),
        "imagePullPolicy": context.image_pull_policy,
        "command": ["vllm-router"],
        "args": router_arguments(model, context.namespace, set_id),
        "env": [{"name": "HOME", "value": "/tmp"}],
        "ports": [
            {"name": "http", "containerPort": ports.ROUTER},
            {"name": "metrics", "containerPort": ports.ROUTER_METRICS},
        ],
        "readinessProbe": {"httpGet": {"path": "/readiness", "port": "http"}, "periodSeconds": 2, "timeoutSeconds": 3},
        "livenessProbe": {"httpGet": {"path": "/liveness", "port": "http"}, "periodSeconds": 10, "failureThreshold": 6},
        "lifecycle": {"preStop": {"sleep": {"seconds": timing.router_prestop_seconds(model.longest_request_seconds)}}},
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": container_security(),
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }


def _spread(selector: dict[str, str]) -> dict[str, Any]:
    return {
        "maxSkew": 1,
        "topologyKey": labels.HOSTNAME,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": selector},
    }


def _selector(wanted: dict[str, str]) -> list[str]:
    return [f"{key}={value}" for key, value in wanted.items()]
