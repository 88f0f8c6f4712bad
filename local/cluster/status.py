"""What the local cluster is doing, for people and for scripts."""

from pydantic import BaseModel, ConfigDict

from local import state
from local.cluster import addons, nodes, pki
from local.cluster.addons.kwok import SIMULATED
from local.cluster.api import Api
from local.cluster.layout import Layout
from local.cluster.lifecycle import connect
from local.cluster.processes import Supervisor
from local.errors import LocalError
from local.tools.catalogue import BUILDS


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class NodeStatus(_Frozen):
    """One node; `chips` are the extended resources that the scheduler may give out on it."""

    name: str
    ready: bool
    simulated: bool
    memory: str
    chips: dict[str, int]


class Status(_Frozen):
    """The whole cluster; it is usable when the API server answers, a real node is ready and every process runs."""

    usable: bool
    reachable: bool
    server: str
    endpoint: str
    kubeconfig: str
    versions: dict[str, str]
    nodes: list[NodeStatus]
    addons: dict[str, bool]
    processes: dict[str, bool]


def status(layout: Layout, kubeconfig: str) -> Status:
    """Look at the processes and ask the API server; a cluster that was never started is reported as not reachable."""
    supervisor = Supervisor(layout.state)
    processes = {name: supervisor.running(name) is not None for name in supervisor.names()}
    found, version = _ask(layout)
    usable = (
        bool(processes)
        and all(processes.values())
        and any(node.ready and not node.simulated for node in found)
        and version is not None
    )
    return Status(
        usable=usable,
        reachable=version is not None,
        server=layout.server,
        endpoint=f"https://localhost:{layout.port}",
        kubeconfig=kubeconfig,
        versions={**{build.module: build.version for build in BUILDS}, **({"kubernetes": version} if version else {})},
        nodes=found,
        addons={name: processes.get(addons.named(name).tool, False) for name in addons.ADDONS},
        processes=processes,
    )


def _ask(layout: Layout) -> tuple[list[NodeStatus], str | None]:
    if not state.is_claimed() or not pki.certificate_file(layout, "bootstrap").exists():
        return [], None
    api = connect(layout)
    try:
        return _nodes(api), api.get("/version")["gitVersion"]
    except LocalError:
        return [], None
    finally:
        api.close()


def _nodes(api: Api) -> list[NodeStatus]:
    return [
        NodeStatus(
            name=node["metadata"]["name"],
            ready=nodes.is_ready(node),
            simulated=SIMULATED in node["metadata"].get("labels", {}),
            memory=node.get("status", {}).get("allocatable", {}).get("memory", "0"),
            chips=nodes.chips(node),
        )
        for node in api.get("/api/v1/nodes")["items"]
    ]
