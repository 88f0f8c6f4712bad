"""What the cluster holds and says of a namespace: objects, events, logs, process environments, Envoy's configuration."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import kr8s
from kr8s.objects import Pod

from policies.audit.run import Place, Unreadable
from rules import names

_SKIPPED: Final = frozenset({"bindings", "localsubjectaccessreviews", "podmetrics", "events"})
_ENVIRONMENT: Final = (
    "import glob\n"
    "for path in glob.glob('/proc/[0-9]*/environ') + glob.glob('/proc/[0-9]*/cmdline'):\n"
    "    try: print(path, open(path, errors='replace').read().replace(chr(0), chr(10)))\n"
    "    except OSError: pass\n"
)
_CONFIG_DUMP: Final = (
    "import glob, socket, sys\n"
    "admin = socket.socket(socket.AF_UNIX)\n"
    "admin.connect((glob.glob('/*/admin.sock') + glob.glob('/*/*/admin.sock'))[0])\n"
    "admin.sendall(b'GET /config_dump?include_eds HTTP/1.1\\r\\nhost: admin\\r\\nconnection: close\\r\\n\\r\\n')\n"
    "answer = b''.join(iter(lambda: admin.recv(65536), b''))\n"
    "print(answer.decode(errors='replace'))\n"
    "sys.exit(0 if answer.startswith(b'HTTP/1.1 200') else 1)\n"
)


def places(api: kr8s.Api, namespace: str) -> list[Place]:
    """Every place of one namespace."""

    def place(name: str, read: Callable[[kr8s.Api, str], Iterable[tuple[str, Any]]]) -> Place:
        return Place(f"cluster: {name}", lambda: guarded(read(api, namespace)))

    return [
        place("objects", _objects),
        place("events", _events),
        place("container logs", _logs),
        place("process environments and arguments", _processes),
        place("Envoy configuration dump", _envoy),
    ]


def guarded(items: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """The items; whatever the cluster's client raises becomes Unreadable."""
    try:
        yield from items
    except Unreadable:
        raise
    except Exception as error:  # kr8s lets errors of httpx, anyio and websockets through
        raise Unreadable(f"the cluster could not be read ({type(error).__name__})") from None


def _objects(api: kr8s.Api, namespace: str) -> Iterator[tuple[str, Any]]:
    """Whatever the namespace holds, of every kind that can be listed; of Secrets everything but the data."""
    for kind in api.api_resources():
        if not kind["namespaced"] or "list" not in kind["verbs"] or kind["name"] in _SKIPPED or "/" in kind["name"]:
            continue
        version = kind.get("version", "v1")
        group = version.rpartition("/")[0]
        name = f"{kind['name']}.{group}" if group else kind["name"]
        yield from ((f"{kind['kind']} {one.name}", _shown(kind["kind"], one.raw)) for one in _all(api, name, namespace))


def _shown(kind: str, raw: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in raw.items() if kind != "Secret" or key not in ("data", "stringData")}


def _events(api: kr8s.Api, namespace: str) -> Iterator[tuple[str, Any]]:
    for event in _all(api, "events", namespace):
        yield event.name, {"message": event.raw.get("message"), "note": event.raw.get("note")}


def _logs(api: kr8s.Api, namespace: str) -> Iterator[tuple[str, Any]]:
    """The gateway's access log is the log of its container."""
    for pod, container in _running(api, namespace):
        yield f"{pod.name}/{container}", "\n".join(pod.logs(container=container))


def _processes(api: kr8s.Api, namespace: str) -> Iterator[tuple[str, Any]]:
    yield from _executed(_running(api, namespace), _ENVIRONMENT)


def _envoy(api: kr8s.Api, namespace: str) -> Iterator[tuple[str, Any]]:
    running = _running(api, namespace)
    gateways = [(pod, name) for pod, name in running if pod.labels.get("app.kubernetes.io/name") == names.GATEWAY]
    yield from _executed(gateways, _CONFIG_DUMP)


def _executed(containers: Iterable[tuple[Pod, str]], script: str) -> Iterator[tuple[str, Any]]:
    unread = []
    for pod, container in containers:
        done = pod.exec(["python3", "-c", script], container=container, check=False)
        if done.returncode:
            unread.append(f"{pod.name}/{container}")
        yield f"{pod.name}/{container}", done.stdout.decode(errors="replace")
    if unread:
        raise Unreadable(f"could not look inside {', '.join(unread)}")


def _running(api: kr8s.Api, namespace: str) -> list[tuple[Pod, str]]:
    pods = [pod for pod in _all(api, "pods", namespace) if pod.status.get("phase") == "Running"]
    return [(pod, container["name"]) for pod in pods for container in pod.spec["containers"]]


def _all(api: kr8s.Api, kind: str, namespace: str) -> Iterator[Any]:
    yield from api.get(kind, namespace=namespace)
