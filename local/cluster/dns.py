"""CoreDNS: the cluster's names, and nothing of the world outside."""

import httpx

from local import tools
from local.cluster import namespaces
from local.cluster.files import write
from local.cluster.layout import DNS_DOMAIN, Layout
from local.cluster.processes import Service

READY_PORT = 8181


def coredns(layout: Layout) -> Service:
    """CoreDNS on the node's address, behind the Service kube-dns."""
    target = layout.configuration / "Corefile"
    configuration = f"""\
.:53 {{
    bind {layout.node}
    errors
    ready {layout.node}:{READY_PORT}
    kubernetes {DNS_DOMAIN} in-addr.arpa {{
        kubeconfig {layout.kubeconfig("coredns")}
        pods insecure
    }}
    cache 5
}}
"""
    write(target, configuration)
    command = (str(tools.path("coredns")), "-conf", str(target))
    return Service("coredns", command, namespaces.enter_network(layout), configuration)


def is_ready(layout: Layout) -> bool:
    """Whether CoreDNS knows the cluster's Services by now."""
    try:
        return httpx.get(f"http://{layout.node}:{READY_PORT}/ready", timeout=2.0, trust_env=False).is_success
    except httpx.HTTPError:
        return False
