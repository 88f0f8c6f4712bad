"""The control plane's processes with their flags; all certificates are the cluster's own."""

from collections.abc import Mapping

from local import tools
from local.cluster import namespaces, pki
from local.cluster.layout import API_PORT, SERVICE_RANGE, Layout
from local.cluster.processes import Service

HPA_SYNC_SECONDS = 5  # a third of Kubernetes' default, so that scaling can be watched


def etcd(layout: Layout) -> Service:
    """etcd on the loopback of the cluster's network; it does not wait for the disk, as its data is made anew with the cluster."""
    certificate, key = pki.certificate_file(layout, "etcd"), pki.key_file(layout, "etcd")
    authority = pki.certificate_file(layout, "etcd-ca")
    return _service(
        layout,
        "etcd",
        {
            "name": "local",
            "data-dir": layout.data / "etcd",
            "listen-client-urls": "https://127.0.0.1:2379",
            "advertise-client-urls": "https://127.0.0.1:2379",
            "listen-peer-urls": "https://127.0.0.1:2380",
            "initial-advertise-peer-urls": "https://127.0.0.1:2380",
            "initial-cluster": "local=https://127.0.0.1:2380",
            "cert-file": certificate,
            "key-file": key,
            "client-cert-auth": "true",
            "trusted-ca-file": authority,
            "peer-cert-file": certificate,
            "peer-key-file": key,
            "peer-client-cert-auth": "true",
            "peer-trusted-ca-file": authority,
            "unsafe-no-fsync": "true",
            "log-level": "warn",
        },
    )


def api_server(layout: Layout) -> Service:
    """The API server: no anonymous requests, no token file, a front proxy for aggregated APIs."""

    def certificate(name: str) -> object:
        return pki.certificate_file(layout, name)

    def key(name: str) -> object:
        return pki.key_file(layout, name)

    return _service(
        layout,
        "kube-apiserver",
        {
            "advertise-address": layout.node,
            "secure-port": API_PORT,
            "tls-cert-file": certificate("apiserver"),
            "tls-private-key-file": key("apiserver"),
            "client-ca-file": certificate("ca"),
            "anonymous-auth": "false",
            "authorization-mode": "Node,RBAC",
            "enable-admission-plugins": "NodeRestriction",
            "allow-privileged": "true",
            "etcd-servers": "https://127.0.0.1:2379",
            "etcd-cafile": certificate("etcd-ca"),
            "etcd-certfile": certificate("etcd-client"),
            "etcd-keyfile": key("etcd-client"),
            "service-cluster-ip-range": SERVICE_RANGE,
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": layout.pki / f"{pki.SERVICE_ACCOUNTS}.pub",
            "service-account-signing-key-file": key(pki.SERVICE_ACCOUNTS),
            "kubelet-certificate-authority": certificate("ca"),
            "kubelet-client-certificate": certificate(pki.KUBELET_CLIENT),
            "kubelet-client-key": key(pki.KUBELET_CLIENT),
            # Names of nodes are in no DNS: logs and exec go to their addresses.
            "kubelet-preferred-address-types": "InternalIP",
            "enable-aggregator-routing": "true",
            "requestheader-client-ca-file": certificate("front-proxy-ca"),
            "requestheader-allowed-names": "front-proxy-client",
            "requestheader-extra-headers-prefix": "X-Remote-Extra-",
            "requestheader-group-headers": "X-Remote-Group",
            "requestheader-username-headers": "X-Remote-User",
            "proxy-client-cert-file": certificate("front-proxy-client"),
            "proxy-client-key-file": key("front-proxy-client"),
        },
    )


def controller_manager(layout: Layout) -> Service:
    """The controller manager: it fills `kube-root-ca.crt` of every namespace and signs certificate requests."""
    return _service(
        layout,
        "kube-controller-manager",
        {
            **_clients(layout, "kube-controller-manager"),
            "use-service-account-credentials": "true",
            "service-account-private-key-file": pki.key_file(layout, pki.SERVICE_ACCOUNTS),
            "root-ca-file": pki.certificate_file(layout, "ca"),
            "cluster-signing-cert-file": pki.certificate_file(layout, "ca"),
            "cluster-signing-key-file": pki.key_file(layout, "ca"),
            "horizontal-pod-autoscaler-sync-period": f"{HPA_SYNC_SECONDS}s",
        },
    )


def scheduler(layout: Layout) -> Service:
    """The scheduler, as it comes."""
    return _service(layout, "kube-scheduler", _clients(layout, "kube-scheduler"))


def _clients(layout: Layout, name: str) -> dict[str, object]:
    kubeconfig = layout.kubeconfig(name)
    return {
        "kubeconfig": kubeconfig,
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "bind-address": "127.0.0.1",
        "leader-elect": "false",
    }


def _service(layout: Layout, name: str, flags: Mapping[str, object]) -> Service:
    command = (str(tools.path(name)), *(f"--{flag}={value}" for flag, value in flags.items()))
    return Service(name, command, namespaces.enter_network(layout))
