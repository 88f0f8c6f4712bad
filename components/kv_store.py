"""The Mooncake store: its master, which only keeps the index, and the configuration that engines join it with."""

import json
from dataclasses import dataclass
from typing import Any

import pulumi

from components.context import Context
from components.disruption import disruption_budget
from components.objects import Manifest, declare
from components.pods.security import container_security, pod_security
from components.pods.store import StorePodArgs, store_deployment
from rules import digest, labels, names, ports
from rules.chips import Protocol
from rules.engine import store_config
from rules.quantity import to_bytes
from settings.kv_store import KvStoreSettings
from settings.node_pools import NodePoolSettings
from settings.settings import Settings


@dataclass(frozen=True, kw_only=True)
class KvStoreArgs:
    """One store: the settings that all stores share, and the transport of this one."""

    settings: KvStoreSettings
    protocol: Protocol
    pool: NodePoolSettings | None = None
    """The node pool of the store's pods, where the settings name one."""

    @classmethod
    def of(cls, settings: Settings, protocol: Protocol) -> "KvStoreArgs":
        """The store of one transport of a stack."""
        pods = settings.kv_store.store_pods
        pool = next((pool for pool in settings.node_pools if pods and pool.name == pods.pool), None)
        return cls(settings=settings.kv_store, protocol=protocol, pool=pool)

    @property
    def name(self) -> str:
        """The master, its Service, and the ConfigMap of its clients."""
        return names.kv_master(self.protocol, self.settings.protocol)

    @property
    def etcd(self) -> str:
        """The etcd of the masters' election as Mooncake writes it, empty without one."""
        return ";".join(self.settings.ha.etcd) if self.settings.ha else ""

    def cluster_id(self, namespace: str) -> str:
        """Under which name the masters elect and clients look: another store in the same etcd is another cluster."""
        return f"{namespace}-{self.name}"

    def master(self, namespace: str) -> str:
        """Where clients find the leading master."""
        return (
            f"etcd://{self.etcd}" if self.etcd else f"{names.cluster_local(self.name, namespace)}:{ports.KV_MASTER_RPC}"
        )

    @property
    def device(self) -> str:
        """Names of the RDMA devices, for RDMA alone."""
        return self.settings.device if self.protocol == "rdma" else ""

    @property
    def selector(self) -> dict[str, str]:
        """The master's immutable selector."""
        return {"moonstack.dev/part": self.name}


@dataclass(frozen=True, kw_only=True)
class KvStoreResources:
    """The store's objects."""

    config: pulumi.CustomResource
    service: pulumi.CustomResource
    master: pulumi.CustomResource
    budget: pulumi.CustomResource
    pods: pulumi.CustomResource | None
    """The Deployment of the store's own pods, where it has some."""
    pods_budget: pulumi.CustomResource | None


class KvStore(pulumi.ComponentResource):
    """Mooncake's master, Service, PodDisruptionBudgets, the engines' configuration, and pods that hold the store's memory."""

    resources: KvStoreResources

    def __init__(
        self, name: str, args: KvStoreArgs, context: Context, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        properties = {"settings": args.settings.model_dump(mode="json"), "protocol": args.protocol}
        super().__init__("moonstack:serving:KvStore", name, properties, opts)
        timeouts = pulumi.CustomTimeouts(create="5m", update="5m")
        master = declare(deployment(args, context), self, context, custom_timeouts=timeouts)
        pods = store_pods(args, context.namespace)
        self.resources = KvStoreResources(
            config=declare(config_map(args, context), self, context),
            service=declare(service(args, context), self, context),
            master=master,
            budget=declare(disruption_budget(args.name, "kv-store", args.selector, context), self, context),
            pods=self._create_pods(pods, master, context) if pods else None,
            pods_budget=declare(disruption_budget(pods.name, "kv-store", pods.selector, context), self, context)
            if pods
            else None,
        )
        self.register_outputs({"master": self.resources.master.id})

    def _create_pods(
        self, pods: StorePodArgs, master: pulumi.CustomResource, context: Context
    ) -> pulumi.CustomResource:
        """After the master: without one they try for 88 seconds, and end."""
        timeouts = pulumi.CustomTimeouts(create="10m", update=f"{10 + 2 * pods.settings.replicas}m")
        deployment = store_deployment(pods, context)
        return declare(deployment, self, context, depends_on=[master], custom_timeouts=timeouts)


def config_map(args: KvStoreArgs, context: Context) -> Manifest:
    """The engines' mooncake.json."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": context.metadata(args.name, "kv-store"),
        "data": {"mooncake.json": json.dumps(engine_store_config(args, context.namespace), indent=2, sort_keys=True)},
    }


def service(args: KvStoreArgs, context: Context) -> Manifest:
    """The master's Service."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": context.metadata(args.name, "kv-store"),
        "spec": {
            "selector": args.selector,
            "ports": [
                {"name": "rpc", "port": ports.KV_MASTER_RPC, "targetPort": "rpc"},
                {"name": "metrics", "port": ports.KV_MASTER_METRICS, "targetPort": "metrics"},
            ],
        },
    }


def engine_store_config(args: KvStoreArgs, namespace: str) -> dict[str, Any]:
    """mooncake.json as the engines of this namespace and transport read it; devices are named for RDMA alone."""
    settings = args.settings
    return store_config(
        master=args.master(namespace),
        segment_bytes=to_bytes(settings.engine_segment(args.protocol)),
        buffer_bytes=to_bytes(settings.buffer),
        protocol=args.protocol,
        device=args.device,
    )


def store_pods(args: KvStoreArgs, namespace: str) -> StorePodArgs | None:
    """The pods that hold this store's memory, None where engines do."""
    pods = args.settings.pods_of(args.protocol)
    if pods is None:
        return None
    return StorePodArgs(
        name=names.kv_store(args.protocol, args.settings.protocol),
        settings=pods,
        protocol=args.protocol,
        master=args.master(namespace),
        device=args.device,
        environment=store_environment(args, namespace),
        pool=args.pool,
    )


def store_environment(args: KvStoreArgs, namespace: str) -> dict[str, str]:
    """What a client must know beside mooncake.json: it finds no leader under Mooncake's default name (0.3.13, measured)."""
    return {"MC_STORE_CLUSTER_ID": args.cluster_id(namespace)} if args.settings.ha else {}


def store_digest(args: KvStoreArgs, namespace: str) -> str:
    """Changes when engines must restart to read another store configuration."""
    return digest.short(engine_store_config(args, namespace))


def deployment(args: KvStoreArgs, context: Context) -> Manifest:
    """One master, replaced and never doubled: it is a cache index, losing it loses no request (measured, 0 of 91).

    With election there are several; a rollout brings each new one up beside the others.
    """
    ha = args.settings.ha
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": context.metadata(args.name, "kv-store"),
        "spec": {
            "replicas": ha.masters if ha else 1,
            "strategy": rolling if ha else {"type": "Recreate"},
            "selector": {"matchLabels": args.selector},
            "template": {
                "metadata": {"labels": labels.recommended(args.name, "kv-store", context.stack) | args.selector},
                "spec": _pod_spec(args, context),
            },
        },
    }


def _pod_spec(args: KvStoreArgs, context: Context) -> dict[str, Any]:
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": pod_security(),
        "terminationGracePeriodSeconds": 5,
        "containers": [_master_container(args, context)],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }


def _master_container(args: KvStoreArgs, context: Context) -> dict[str, Any]:
    """A master that doesn't lead listens on its metrics port alone, so with election that one tells whether it lives."""
    elected = args.settings.ha is not None
    health = {"httpGet": {"path": "/health", "port": "metrics"}}
    return {
        "name": "master",
        "image": context.image("mooncake"),
        "imagePullPolicy": context.image_pull_policy,
        "command": ["mooncake_master"],
        "args": [
            f"--rpc_port={ports.KV_MASTER_RPC}",
            f"--metrics_port={ports.KV_MASTER_METRICS}",
            f"--client_ttl={args.settings.client_ttl_seconds}",
            f"--default_kv_lease_ttl={args.settings.lease_ttl_ms}",
            "--logtostderr",
            *(_election(args, context.namespace) if elected else ()),
        ],
        **({"env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]} if elected else {}),
        "ports": [
            {"name": "rpc", "containerPort": ports.KV_MASTER_RPC},
            {"name": "metrics", "containerPort": ports.KV_MASTER_METRICS},
        ],
        "readinessProbe": {**health, "periodSeconds": 2},
        "livenessProbe": {
            **(health if elected else {"tcpSocket": {"port": "rpc"}}),
            "periodSeconds": 10,
            "failureThreshold": 6,
        },
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": container_security(),
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }


def _election(args: KvStoreArgs, namespace: str) -> list[str]:
    """Clients are told the leader's own address, so it is the pod's."""
    return [
        "--enable_ha=true",
        f"--etcd_endpoints={args.etcd}",
        f"--cluster_id={args.cluster_id(namespace)}",
        "--rpc_address=$(POD_IP)",
    ]
