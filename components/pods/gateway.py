"""The gateway's pod: Envoy, its mounted files, and an end that loses no request."""

from typing import Any, Final

from components.envoy.files import BOOTSTRAP
from components.envoy.filters import HEALTH_PATH
from components.envoy.process import arguments, drain_script, grace_seconds
from components.envoy.schema import Pod
from components.pods.security import container_security, pod_security
from rules import labels, names
from settings.settings import Settings

SELECTOR: Final = {"moonstack.dev/part": names.GATEWAY}
"""The gateway's immutable selector."""
SERVICE_CONFIG_PATH: Final = "/etc/moonstack/service"


def gateway_template(settings: Settings, image: str, pull_policy: str, pod_labels: dict[str, str], digest: str) -> Any:
    """The pod template; `digest` changes only with what running pods can't take up."""
    return {
        "metadata": {"labels": pod_labels | SELECTOR, "annotations": {labels.CONFIG_DIGEST: digest}},
        "spec": {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": pod_security(),
            "terminationGracePeriodSeconds": grace_seconds(settings),
            "topologySpreadConstraints": [_spread()],
            "containers": [gateway_container(settings, image, pull_policy)],
            "volumes": _volumes(settings),
        },
    }


def gateway_container(settings: Settings, image: str, pull_policy: str) -> dict[str, Any]:
    """Envoy. Ready means that a request on the data port is answered, which it isn't before its keys are there."""
    pod = Pod()
    gateway = settings.gateway
    scheme = "HTTP" if gateway.tls.source == "none" else "HTTPS"
    return {
        "name": "envoy",
        "image": image,
        "imagePullPolicy": pull_policy,
        "command": ["envoy"],
        "args": arguments(settings, f"{pod.config}/{BOOTSTRAP}"),
        "ports": [
            {"name": "http", "containerPort": gateway.http_port},
            {"name": "grpc", "containerPort": gateway.grpc_port},
            {"name": "metrics", "containerPort": pod.metrics_port},
            {"name": "health", "containerPort": pod.health_port},
        ],
        "readinessProbe": {
            "httpGet": {"path": HEALTH_PATH, "port": "http", "scheme": scheme},
            "periodSeconds": 2,
            "timeoutSeconds": 2,
            "failureThreshold": 2,
        },
        "livenessProbe": {"tcpSocket": {"port": "health"}, "periodSeconds": 10, "failureThreshold": 3},
        "lifecycle": {"preStop": {"exec": {"command": ["/bin/bash", "-c", drain_script(settings, pod)]}}},
        "resources": {
            "requests": {"cpu": gateway.cpu, "memory": gateway.memory},
            "limits": {"memory": gateway.memory},
        },
        "securityContext": container_security(),
        "volumeMounts": _mounts(settings, pod),
    }


def _sources(settings: Settings, pod: Pod) -> list[tuple[str, str, dict[str, Any]]]:
    """Volume name, mount path and source of each read-only folder.

    The channel's keys may come later, as from an external store: until then the channel alone is 502, and the cluster serves.
    """
    sources: list[tuple[str, str, dict[str, Any]]] = [
        ("config", pod.config, {"configMap": {"name": names.GATEWAY_CONFIG}}),
        ("service-config", SERVICE_CONFIG_PATH, {"configMap": {"name": names.SERVICE_CONFIG}}),
        ("client-keys", pod.keys, {"secret": _secret(names.CLIENT_KEYS)}),
    ]
    if settings.channel.enabled:
        sources += [
            ("channel-keys", pod.channel, {"secret": {**_secret(names.CHANNEL_KEYS), "optional": True}}),
            ("channel-gate", pod.gate, {"configMap": {"name": names.CHANNEL_GATE}}),
        ]
    if settings.gateway.tls.source != "none":
        sources.append(("certificate", pod.tls, {"secret": _secret(tls_secret(settings))}))
    return sources


def _secret(name: str) -> dict[str, Any]:
    return {"secretName": name, "defaultMode": 0o440}


def tls_secret(settings: Settings) -> str:
    """The Secret that holds the gateway's certificate."""
    tls = settings.gateway.tls
    return names.GATEWAY_TLS if tls.source == "localCa" else tls.secret_name


def _volumes(settings: Settings) -> list[dict[str, Any]]:
    mounted = [{"name": name, **source} for name, _, source in _sources(settings, Pod())]
    return [*mounted, {"name": "run", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}]


def _mounts(settings: Settings, pod: Pod) -> list[dict[str, Any]]:
    mounted = [{"name": name, "mountPath": path, "readOnly": True} for name, path, _ in _sources(settings, pod)]
    return [*mounted, {"name": "run", "mountPath": pod.run}]


def _spread() -> dict[str, Any]:
    return {
        "maxSkew": 1,
        "topologyKey": labels.HOSTNAME,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": SELECTOR},
    }
