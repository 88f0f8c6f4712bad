"""Start and stop the local cluster; both can be called at any time, in any state, and converge."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from local import packages, prerequisites, state, tools
from local.cluster import (
    addons,
    control_plane,
    dns,
    kubeconfig,
    listener,
    namespaces,
    node,
    nodes,
    objects,
    pause,
    pki,
    teardown,
)
from local.cluster.api import Api, wait_until
from local.cluster.layout import NODE, Layout, layout
from local.cluster.processes import Service, Supervisor
from local.errors import LocalError
from local.progress import Progress
from local.tools.catalogue import CLUSTER
from settings.paths import cache_dir

API_SECONDS = 60.0
NODE_SECONDS = 90.0

_LAST = ("containerd", namespaces.NODE_VIEW, "kube-apiserver", "etcd")
_FINAL_SECONDS = 2.0  # an API server waits a minute for its watches; nothing of its data is kept


def connect(place: Layout) -> Api:
    """A client of the API server as the cluster's own operator."""
    return Api(
        place.server,
        pki.certificate_file(place, "ca"),
        pki.certificate_file(place, "bootstrap"),
        pki.key_file(place, "bootstrap"),
    )


def up(progress: Progress, wanted_addons: tuple[str, ...] = ()) -> None:
    """Bring the cluster to work: install, build, start and restart what is missing; what runs is left alone.

    Raises LocalError with one line for each thing that the machine lacks.
    """
    place = layout()
    prerequisites.check(place)
    packages.ensure((*packages.NODE, *addons.packages(wanted_addons)), progress)
    tools.ensure((*CLUSTER, *addons.tools(wanted_addons)), progress)
    with _machine():
        state.claim()
        _Start(place, progress).run(wanted_addons)


def down(progress: Progress) -> None:
    """Stop everything and remove all of it but the cache; what is not there is no error."""
    place = layout()
    with _machine():
        if namespaces.processes_in_network(place) and not state.is_claimed():
            raise LocalError(
                f"the cluster that runs was not started from {place.state}: set MOONSTACK_STATE to its folder"
            )
        supervisor = Supervisor(place.state)
        with progress.phase("stop and remove the local cluster"):
            supervisor.stop(*(name for name in supervisor.names() if name not in _LAST))
            teardown.end_node(place, supervisor)
            supervisor.stop(*_LAST, seconds=_FINAL_SECONDS)
            namespaces.remove_network(place)
            namespaces.remove_mount_points(place)
            if state.is_claimed():
                teardown.remove_state(place)


def stop_addon(name: str, progress: Progress) -> None:
    """Stop an addon of the running cluster and undo what it set up."""
    place = layout()
    with _machine(), progress.phase(f"stop addon {name}"):
        api = connect(place)
        addons.stop(name, place, Supervisor(place.state), api)
        api.close()


class _Start:
    """One run of `up` on a machine that has everything it needs."""

    def __init__(self, place: Layout, progress: Progress) -> None:
        self._place = place
        self._progress = progress
        self._supervisor = Supervisor(place.state)

    def run(self, wanted_addons: tuple[str, ...]) -> None:
        if self._supervisor.running(listener.LISTENER) is None:
            listener.require_free(self._place)
        self._refuse_a_second_cluster()
        with self._progress.phase("network, certificates"):
            namespaces.ensure_network(self._place)
            pki.ensure(self._place)
            kubeconfig.write_all(self._place)
        with self._progress.phase("control plane"):
            self._start(control_plane.etcd(self._place))
            self._start(control_plane.api_server(self._place))
            self._start_containerd()
            self._start_control_plane()
        with self._progress.phase("node, DNS"):
            self._start_node()
        with self._progress.phase("load balancer"):
            self._start(listener.load_balancer(self._place))
        for addon in sorted({*wanted_addons, *addons.enabled(self._place)}):
            with self._progress.phase(f"addon {addon}"):
                api = connect(self._place)
                addons.start(addon, self._place, self._supervisor, api)
                api.close()

    def _refuse_a_second_cluster(self) -> None:
        """What this state folder has once started is its own, pods that outlived a crash of everything else included."""
        if not self._supervisor.names() and namespaces.processes_in_network(self._place):
            raise LocalError(
                "another local cluster runs on this machine, or what a crash left of one: run `python -m local down`"
                " with the MOONSTACK_STATE that it was started with"
            )

    def _start_containerd(self) -> None:
        if self._supervisor.running(namespaces.NODE_VIEW) is None:
            teardown.end_node(self._place, self._supervisor)
        namespaces.ensure_node_view(self._place, self._supervisor)
        self._wait(lambda: namespaces.node_view_ready(self._place), namespaces.NODE_VIEW, 10)
        self._place.containerd.mkdir(exist_ok=True)
        self._start(node.containerd(self._place, self._supervisor))

    def _start_control_plane(self) -> None:
        api = connect(self._place)
        self._wait(api.ready, "kube-apiserver", API_SECONDS)
        self._start(control_plane.controller_manager(self._place))
        self._start(control_plane.scheduler(self._place))
        for document in objects.bootstrap(self._place):
            api.apply(document)
        api.close()

    def _start_node(self) -> None:
        self._wait(self._place.socket.is_socket, "containerd", 20)
        self._wait(lambda: pause.ensure_image(self._place), "containerd", 20)
        for service in (
            node.kubelet(self._place, self._supervisor),
            node.kube_proxy(self._place),
            dns.coredns(self._place),
        ):
            self._start(service)
        api = connect(self._place)
        self._wait(lambda: self._is_node_ready(api), "kubelet", NODE_SECONDS)
        nodes.prepare(api)
        self._wait(lambda: dns.is_ready(self._place), "coredns", 30)
        api.close()

    def _is_node_ready(self, api: Api) -> bool:
        listed = api.get("/api/v1/nodes", fieldSelector=f"metadata.name={NODE}")["items"]
        return any(nodes.is_ready(found) for found in listed)

    def _start(self, service: Service) -> None:
        self._supervisor.ensure(service)

    def _wait(self, condition: Callable[[], bool], name: str, seconds: float) -> None:
        def holds() -> bool:
            self._supervisor.require(name)
            return condition()

        wait_until(holds, f"{name} becoming ready", seconds)


@contextmanager
def _machine() -> Iterator[None]:
    """One `up` or `down` at a time; the next waits."""
    cache_dir().mkdir(parents=True, exist_ok=True)
    with (cache_dir() / "local-cluster.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
