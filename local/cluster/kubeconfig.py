"""Kubeconfigs: with paths to keys for the components, with the keys inside for the user."""

import base64
import json
from pathlib import Path

from local.cluster import pki
from local.cluster.files import write
from local.cluster.layout import Layout
from settings.paths import local_kubeconfig

COMPONENTS = ("kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "coredns", "kube-router", "kwok")
_CLUSTER = "moonstack"


def write_all(layout: Layout) -> None:
    """Write every component's kubeconfig, and the administrator's to where the user finds it."""
    layout.configuration.mkdir(parents=True, exist_ok=True)
    for component in COMPONENTS:
        authority = {"certificate-authority": str(pki.certificate_file(layout, "ca"))}
        user = {
            "client-certificate": str(pki.certificate_file(layout, component)),
            "client-key": str(pki.key_file(layout, component)),
        }
        _write(layout.kubeconfig(component), layout, component, authority, user)
    inside = {"certificate-authority-data": _encoded(pki.certificate_file(layout, "ca"))}
    user = {
        "client-certificate-data": _encoded(pki.certificate_file(layout, "administrator")),
        "client-key-data": _encoded(pki.key_file(layout, "administrator")),
    }
    _write(local_kubeconfig(), layout, "moonstack-administrator", inside, user)


def _write(path: Path, layout: Layout, user: str, authority: dict[str, str], credentials: dict[str, str]) -> None:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": _CLUSTER,
        "clusters": [{"name": _CLUSTER, "cluster": {"server": layout.server, **authority}}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": _CLUSTER, "context": {"cluster": _CLUSTER, "user": user}}],
    }
    write(path, json.dumps(document, indent=2), mode=0o600)


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
