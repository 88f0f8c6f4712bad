"""NetworkPolicies that bite: kube-router as a firewall beside kube-proxy; without it the cluster accepts and ignores them."""

import subprocess

from local import packages, tools
from local.cluster import namespaces, objects
from local.cluster.addons.addon import Addon
from local.cluster.api import Api
from local.cluster.layout import NODE, SERVICE_RANGE, Layout
from local.cluster.processes import Service

_TOOL = "kube-router"
_CHAINS = ("KUBE-ROUTER-", "KUBE-POD-FW-", "KUBE-NWPLCY-")


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
    """Take out kube-router's chains and sets; its own --cleanup-config ends in a panic and leaves them."""
    inside = namespaces.enter_network(layout)
    for family in ("iptables", "ip6tables"):
        saved = subprocess.run(
            [*inside, f"{family}-save", "--table", "filter"], capture_output=True, text=True, check=True
        )
        kept = "".join(line for line in saved.stdout.splitlines(True) if not any(chain in line for chain in _CHAINS))
        subprocess.run([*inside, f"{family}-restore", "--table", "filter"], input=kept, text=True, check=True)
    sets = subprocess.run([*inside, "ipset", "list", "-name"], capture_output=True, text=True, check=True)
    for name in sets.stdout.split():
        subprocess.run([*inside, "ipset", "destroy", name], capture_output=True, check=False)


NETWORK_POLICIES = Addon(
    name="network-policies",
    tool=_TOOL,
    objects=objects.kube_router,
    service=_service,
    clean=_clean,
    packages=packages.NETWORK_POLICIES,
)
