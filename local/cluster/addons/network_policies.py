"""NetworkPolicies that bite: kube-router as a firewall beside kube-proxy; without it the cluster accepts and ignores them."""

import subprocess

from local import packages, tools
from local.cluster import namespaces, objects
from local.cluster.addons.addon import Addon
from local.cluster.api import Api
from local.cluster.layout import NODE, SERVICE_RANGE, Layout
from local.cluster.processes import Service

_TOOL = "kube-router"


def _service(layout: Layout) -> Service:
    flags = {
        "run-firewall": "true",
        "run-router": "false",
        "run-service-proxy": "false",
        "kubeconfig": layout.kubeconfig(_TOOL),
        "hostname-override": NODE,
        "service-cluster-ip-range": SERVICE_RANGE,
        "iptables-sync-period": "30s",
    }
    command = (str(tools.path(_TOOL)), *(f"--{flag}={value}" for flag, value in flags.items()))
    return Service(_TOOL, command, namespaces.enter_network(layout))


def _clean(layout: Layout, api: Api) -> None:
    command = [*namespaces.enter_network(layout), str(tools.path(_TOOL)), "--cleanup-config"]
    subprocess.run(command, capture_output=True, check=False)


NETWORK_POLICIES = Addon(
    name="network-policies",
    tool=_TOOL,
    objects=objects.kube_router,
    service=_service,
    clean=_clean,
    packages=packages.NETWORK_POLICIES,
)
