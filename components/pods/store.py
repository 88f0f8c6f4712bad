"""The pods that hold a store's memory: Mooncake's own client process, which mounts a segment and serves it to everyone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from components.context import Context
from components.objects import Manifest
from components.pods.placement import spread_over_hosts
from components.pods.security import container_security, pod_security
from rules import labels, ports, timing
from rules.chips import Protocol
from rules.quantity import to_bytes
from settings.kv_store import StorePods
from settings.node_pools import NodePoolSettings


@dataclass(frozen=True, kw_only=True)
class StorePodArgs:
    """The pods of one store."""

    name: str
    settings: StorePods
    protocol: Protocol
    master: str
    """As clients look for it: host:port, or etcd://…"""
    device: str
    environment: Mapping[str, str]
    pool: NodePoolSettings | None = None

    @property
    def selector(self) -> dict[str, str]:
        """The pods' immutable selector."""
        return {"moonstack.dev/part": self.name}


def store_deployment(args: StorePodArgs, context: Context) -> Manifest:
    """One pod after the other is replaced, never one more: a further segment may find no memory on the nodes."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": context.metadata(args.name, "kv-store"),
        "spec": {
            "replicas": args.settings.replicas,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "selector": {"matchLabels": args.selector},
            "template": {
                "metadata": {"labels": labels.recommended(args.name, "kv-store", context.stack) | args.selector},
                "spec": _pod_spec(args, context),
            },
        },
    }


def _pod_spec(args: StorePodArgs, context: Context) -> dict[str, Any]:
    """The process ignores SIGTERM as a container's first one (0.3.13, measured), so its grace is short."""
    place = {}
    if args.pool is not None:
        place = {
            "nodeSelector": args.pool.node_selector(),
            "tolerations": [taint.toleration() for taint in args.pool.tolerations],
        }
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": pod_security(),
        "terminationGracePeriodSeconds": 5,
        **place,
        "topologySpreadConstraints": list(spread_over_hosts(args.selector)),
        "containers": [_container(args, context)],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }


def _container(args: StorePodArgs, context: Context) -> dict[str, Any]:
    """Ready while the master knows it. It lives while its port is open: a restart for a lost master would empty it."""
    settings = args.settings
    device = {args.pool.rdma_resource: "1"} if args.protocol == "rdma" and args.pool and args.pool.rdma_resource else {}
    open_port = {"tcpSocket": {"port": "rpc"}}
    return {
        "name": "store",
        "image": context.image("mooncake"),
        "imagePullPolicy": context.image_pull_policy,
        "command": ["mooncake_client"],
        "args": [
            "--host=$(POD_IP)",
            f"--port={ports.KV_STORE_RPC}",
            f"--global_segment_size={to_bytes(settings.segment)}",
            f"--master_server_address={args.master}",
            "--metadata_server=P2PHANDSHAKE",
            f"--protocol={args.protocol}",
            *([f"--device_names={args.device}"] if args.device else ()),
            "--enable_http_server=true",
            f"--http_port={ports.KV_STORE_METRICS}",
            "--logtostderr",
        ],
        "env": [
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            *({"name": name, "value": value} for name, value in args.environment.items()),
        ],
        "ports": [
            {"name": "rpc", "containerPort": ports.KV_STORE_RPC},
            {"name": "metrics", "containerPort": ports.KV_STORE_METRICS},
        ],
        "startupProbe": {**open_port, "periodSeconds": 2, "failureThreshold": timing.STORE_START_FAILURES},
        "readinessProbe": {"httpGet": {"path": "/health", "port": "metrics"}, "periodSeconds": 2},
        "livenessProbe": {**open_port, "periodSeconds": 10, "failureThreshold": 6},
        "resources": {
            "requests": {"cpu": settings.cpu, "memory": settings.memory_limit, **device},
            "limits": {"memory": settings.memory_limit, **device},
        },
        "securityContext": container_security(),
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }
