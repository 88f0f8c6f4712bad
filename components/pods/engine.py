"""The pod template of an engine, for Deployments and for Kthena's role templates alike."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from components.pods.security import container_security, pod_security
from components.pods.weights import PodWeights
from rules import labels, names, ports, timing
from rules.chips import ChipProfile
from rules.engine import STORE_CONFIG_PATH, EngineLaunch, arguments, environment

STORE_VOLUME = "mooncake"


@dataclass(frozen=True, kw_only=True)
class EngineBuild:
    """The program that serves: its image, how it is started, and what it needs mounted beside the weights."""

    image: str
    command: tuple[str, ...] = ("vllm", "serve")
    environment: Mapping[str, str] = field(default_factory=dict)
    volumes: tuple[dict[str, Any], ...] = ()
    mounts: tuple[dict[str, Any], ...] = ()
    enforce_eager: bool = False


@dataclass(frozen=True, kw_only=True)
class EnginePod:
    """One kind of engine pod. CPU and memory are Kubernetes quantities, chips whole pieces."""

    launch: EngineLaunch
    build: EngineBuild
    chip: ChipProfile
    resource: str | None
    """The extended resource of the pool's driver stack."""
    chips: int
    cpu: str
    memory: str
    memory_limit: str
    weights: PodWeights
    store: str
    """The Mooncake master, and the ConfigMap of its clients."""
    store_environment: Mapping[str, str]
    """What clients of the store must know beside that ConfigMap."""
    load_seconds: int
    node_selector: Mapping[str, str]
    tolerations: tuple[dict[str, Any], ...] = ()
    service_account: str | None = None
    image_pull_policy: str = "IfNotPresent"
    priority_class: str | None = None
    affinity: dict[str, Any] | None = None
    topology_spread: tuple[dict[str, Any], ...] = ()
    rdma_resource: str | None = None
    """The extended resource of the pool's RDMA devices."""


def engine_template(pod: EnginePod, pod_labels: Mapping[str, str], store_digest: str) -> dict[str, Any]:
    """A pod template: engine container, weights, store configuration, probes that mean "model loaded"."""
    return {
        "metadata": {
            "labels": dict(pod_labels),
            "annotations": {
                labels.KV_IDENTITY: pod.launch.cache_prefix,
                labels.CONFIG_DIGEST: store_digest,
            },
        },
        "spec": engine_spec(pod),
    }


def worker_template(pod: EnginePod, pod_labels: Mapping[str, str], store_digest: str) -> dict[str, Any]:
    """A further pod of an engine that spans nodes: headless, so it answers no request, has no probe and is never routed."""
    unrouted = {key: value for key, value in pod_labels.items() if key != labels.ROUTED}
    template = engine_template(pod, unrouted, store_digest)
    container = template["spec"]["containers"][0]
    for field_name in ("ports", "startupProbe", "readinessProbe"):
        del container[field_name]
    container["args"].append("--headless")
    return template


def engine_spec(pod: EnginePod) -> dict[str, Any]:
    """The pod spec; `terminationGracePeriodSeconds` and preStop follow the longest request."""
    spec: dict[str, Any] = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": pod_security(),
        "terminationGracePeriodSeconds": timing.grace_seconds(pod.launch.longest_request_seconds),
        "nodeSelector": dict(pod.node_selector),
        "containers": [engine_container(pod)],
        "volumes": _volumes(pod),
    }
    optional = {
        "tolerations": list(pod.tolerations),
        "serviceAccountName": pod.service_account,
        "initContainers": list(pod.weights.init_containers),
        "priorityClassName": pod.priority_class,
        "affinity": pod.affinity,
        "topologySpreadConstraints": list(pod.topology_spread),
    }
    return spec | {key: value for key, value in optional.items() if value}


def engine_container(pod: EnginePod) -> dict[str, Any]:
    """The engine container. Chip requests equal limits, as Kubernetes wants for extended resources."""
    chips = {pod.resource: str(pod.chips)} if pod.resource and pod.chips else {}
    chips |= {pod.rdma_resource: "1"} if pod.rdma_resource else {}
    return {
        "name": "engine",
        "image": pod.build.image,
        "imagePullPolicy": pod.image_pull_policy,
        "command": list(pod.build.command),
        "args": arguments(pod.launch),
        "env": environment(pod.launch, _environment(pod), pod.chip.pod_ip_variables),
        "ports": [{"name": "http", "containerPort": ports.ENGINE, "protocol": "TCP"}],
        "resources": {
            "requests": {"cpu": pod.cpu, "memory": pod.memory, **chips},
            "limits": {"memory": pod.memory_limit, **chips},
        },
        "startupProbe": _probe(timing.PROBE_PERIOD_SECONDS, timing.startup_failure_threshold(pod.load_seconds)),
        "readinessProbe": _probe(timing.READINESS_PERIOD_SECONDS, timing.READINESS_FAILURES),
        "lifecycle": {"preStop": {"sleep": {"seconds": timing.PRESTOP_SECONDS}}},
        "securityContext": container_security(pod.chip.capabilities),
        "volumeMounts": _mounts(pod),
    }


def _environment(pod: EnginePod) -> dict[str, str]:
    store = pod.store_environment if pod.launch.transfer.uses_store else {}
    return {**pod.chip.environment, **store, **pod.build.environment}


def _probe(period: int, failures: int) -> dict[str, Any]:
    """The engine opens its socket only once the model is loaded, so /health means loaded (B4)."""
    return {
        "httpGet": {"path": "/health", "port": ports.ENGINE},
        "periodSeconds": period,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }


def _volumes(pod: EnginePod) -> list[dict[str, Any]]:
    volumes: list[dict[str, Any]] = [
        {"name": "weights", **pod.weights.volume},
        {"name": "tmp", "emptyDir": {}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": pod.chip.shared_memory}},
    ]
    if pod.launch.transfer.uses_store:
        volumes.append({"name": STORE_VOLUME, "configMap": {"name": pod.store}})
    volumes += [
        {"name": _mount_name(mount.path), "hostPath": {"path": mount.path, "type": mount.kind}}
        for mount in pod.chip.mounts
    ]
    return [*volumes, *pod.build.volumes]


def _mounts(pod: EnginePod) -> list[dict[str, Any]]:
    mounts: list[dict[str, Any]] = [
        {"name": "weights", "mountPath": pod.launch.path, "readOnly": True, **pod.weights.sub_path_mount()},
        {"name": "tmp", "mountPath": "/tmp"},
        {"name": "shm", "mountPath": "/dev/shm"},
    ]
    if pod.launch.transfer.uses_store:
        mounts.append({"name": STORE_VOLUME, "mountPath": STORE_CONFIG_PATH.rpartition("/")[0], "readOnly": True})
    mounts += [{"name": _mount_name(m.path), "mountPath": m.path, "readOnly": True} for m in pod.chip.mounts]
    return [*mounts, *pod.build.mounts]


def _mount_name(path: str) -> str:
    return "host-" + names.slug(path.strip("/").replace("/", "-").replace(".", "-").replace("_", "-").lower())
