"""The capacity controller's workload: configuration, Deployment, Service, budget, and the CronJob that outlives it."""

from typing import Any, Final

from capacity.config import ControllerConfig
from components.context import Context
from components.disruption import disruption_budget
from components.objects import Manifest
from components.pods.security import container_security, pod_security
from rules import digest, labels, names, ports
from rules.metrics.served import GROUP, VERSION

SELECTOR: Final = {"moonstack.dev/part": names.CAPACITY}
CONFIG_PATH: Final = "/etc/moonstack/capacity"
TLS_PATH: Final = "/etc/moonstack/capacity-tls"
_CONFIG: Final = ["--config", f"{CONFIG_PATH}/config.json"]


def config_map(config: ControllerConfig, context: Context) -> Manifest:
    """What the controller is told."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": context.metadata(names.CAPACITY, "capacity"),
        "data": {"config.json": config.model_dump_json(indent=1)},
    }


def state_map(context: Context) -> Manifest:
    """The controller's memory: declared without data, which is the controller's own."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": context.metadata(names.CAPACITY_STATE, "capacity")}


def service(context: Context) -> Manifest:
    """Where the API server's aggregator finds the metrics API."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": context.metadata(names.CAPACITY, "capacity"),
        "spec": {
            "selector": SELECTOR,
            "ports": [{"name": "https", "port": 443, "targetPort": "https"}],
        },
    }


def host(context: Context) -> str:
    """The name by which the aggregator calls the Service, and which the certificate must carry."""
    return f"{names.CAPACITY}.{context.namespace}.svc"


def api_service(context: Context, ca_bundle: Any) -> Manifest:
    """Registers the metrics API; one backend serves a group-version for the whole cluster."""
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {
            "name": f"{VERSION}.{GROUP}",
            "labels": labels.recommended(f"{VERSION}.{GROUP}", "capacity", context.stack),
        },
        "spec": {
            "group": GROUP,
            "version": VERSION,
            "groupPriorityMinimum": 100,
            "versionPriority": 200,
            "caBundle": ca_bundle,
            "service": {"name": names.CAPACITY, "namespace": context.namespace, "port": 443},
        },
    }


def budget(context: Context) -> Manifest:
    """One replica stays: without any, the HPA holds and every namespace deletion in the cluster waits."""
    return disruption_budget(names.CAPACITY, "capacity", SELECTOR, context)


def deployment(config: ControllerConfig, tls_secret: str, context: Context) -> Manifest:
    """Two replicas: both scrape and serve, one acts."""
    own = labels.recommended(names.CAPACITY, "capacity", context.stack) | SELECTOR
    annotations = {labels.CONFIG_DIGEST: digest.short(config.model_dump(mode="json"))}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": context.metadata(names.CAPACITY, "capacity"),
        "spec": {
            "replicas": 2,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "selector": {"matchLabels": SELECTOR},
            "template": {
                "metadata": {"labels": own, "annotations": annotations},
                "spec": _pod_spec(context, _serving_container(context), [_secret_volume("tls", tls_secret)])
                | {"topologySpreadConstraints": [_spread()]},
            },
        },
    }


def floor_expiry(context: Context) -> Manifest:
    """Every two minutes, one step down for floors that no controller stands by any more."""
    pod = _pod_spec(context, _container(context, ["expire-floors", *_CONFIG]), []) | {"restartPolicy": "Never"}
    own = labels.recommended(f"{names.CAPACITY}-expiry", "capacity", context.stack)
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": context.metadata(f"{names.CAPACITY}-expiry", "capacity"),
        "spec": {
            "schedule": "*/2 * * * *",
            "concurrencyPolicy": "Forbid",
            "startingDeadlineSeconds": 60,
            "successfulJobsHistoryLimit": 1,
            "failedJobsHistoryLimit": 1,
            "jobTemplate": {
                "spec": {
                    "backoffLimit": 0,
                    "activeDeadlineSeconds": 60,
                    "ttlSecondsAfterFinished": 300,
                    "template": {"metadata": {"labels": own}, "spec": pod},
                }
            },
        },
    }


def _pod_spec(context: Context, container: dict[str, Any], volumes: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "serviceAccountName": names.CAPACITY,
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "securityContext": pod_security(),
        "terminationGracePeriodSeconds": 20,
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": names.CAPACITY}}, *volumes],
    }


def _container(context: Context, arguments: list[str]) -> dict[str, Any]:
    return {
        "name": "capacity",
        "image": context.image("capacity"),
        "imagePullPolicy": context.image_pull_policy,
        "command": ["python3", "-m", "capacity"],
        "args": arguments,
        "resources": {"requests": {"cpu": "50m", "memory": "96Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": container_security(),
        "volumeMounts": [{"name": "config", "mountPath": CONFIG_PATH, "readOnly": True}],
    }


def _serving_container(context: Context) -> dict[str, Any]:
    tls = ["--certificate", f"{TLS_PATH}/tls.crt", "--key", f"{TLS_PATH}/tls.key"]
    container = _container(context, ["run", *_CONFIG, *tls])
    container["volumeMounts"].append({"name": "tls", "mountPath": TLS_PATH, "readOnly": True})
    probe = {"scheme": "HTTPS", "port": "https"}
    return container | {
        "ports": [
            {"name": "https", "containerPort": ports.CAPACITY_API},
            {"name": "metrics", "containerPort": ports.CAPACITY_METRICS},
        ],
        "readinessProbe": {"httpGet": {"path": "/readyz", **probe}, "periodSeconds": 2, "timeoutSeconds": 3},
        "livenessProbe": {
            "httpGet": {"path": "/livez", **probe},
            "periodSeconds": 10,
            "timeoutSeconds": 5,
            "failureThreshold": 6,
        },
        "startupProbe": {"httpGet": {"path": "/livez", **probe}, "periodSeconds": 2, "failureThreshold": 60},
        "lifecycle": {"preStop": {"sleep": {"seconds": 5}}},
    }


def _secret_volume(name: str, secret: str) -> dict[str, Any]:
    return {"name": name, "secret": {"secretName": secret, "defaultMode": 0o440}}


def _spread() -> dict[str, Any]:
    return {
        "maxSkew": 1,
        "topologyKey": labels.HOSTNAME,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": SELECTOR},
    }
