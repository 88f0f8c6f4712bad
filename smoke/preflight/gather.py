"""Reads the cluster; what can't be read is noted and stops nothing. Access reviews are asked, nothing is written."""

import asyncio
import json
from collections.abc import Coroutine, Iterator
from typing import Any, Final, TypeVar

from rules import kthena, volcano
from settings.settings import Settings
from smoke.cluster import Cluster
from smoke.errors import SmokeError
from smoke.preflight.inventory import Inventory, Object

T = TypeVar("T")
GROUPS: Final = (
    kthena.WORKLOAD,
    kthena.NETWORKING,
    volcano.SCHEDULING,
    volcano.TOPOLOGY,
    "karpenter.sh/v1",
    "keda.sh/v1alpha1",
    "gateway.networking.k8s.io/v1",
    "monitoring.coreos.com/v1",
)
NAMESPACED: Final = (
    ("", "configmaps"),
    ("", "secrets"),
    ("", "services"),
    ("", "serviceaccounts"),
    ("apps", "deployments"),
    ("policy", "poddisruptionbudgets"),
    ("networking.k8s.io", "networkpolicies"),
    ("rbac.authorization.k8s.io", "roles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
)
VERBS: Final = ("create", "patch", "delete")
SYSTEM: Final = ("kube-system", "calico-system", "cilium", "kube-flannel")


async def gather(settings: Settings, cluster: Cluster) -> Inventory:
    """The inventory, within some seconds. Raises SmokeError when the API server can't be asked at all."""
    version = await cluster.api.version()
    try:
        return await _Reader(settings, cluster).inventory(version.get("gitVersion", ""))
    except* SmokeError as errors:
        first = errors.exceptions[0]
    raise first


class _Reader:
    def __init__(self, settings: Settings, cluster: Cluster) -> None:
        self._settings = settings
        self._cluster = cluster
        self._blind: list[str] = []

    async def inventory(self, version: str) -> Inventory:
        """Everything at once."""
        space, cluster = self._settings.cluster.namespace, self._cluster
        async with asyncio.TaskGroup() as reads:
            start = reads.create_task
            kinds = {group: start(self._kinds(group)) for group in GROUPS}
            nodes = start(self._list("nodes", "/api/v1/nodes"))
            pods = start(self._list("pods", "/api/v1/pods"))
            claims = start(self._list("claims", cluster.path("persistentvolumeclaims")))
            quotas = start(self._list("quotas", cluster.path("resourcequotas")))
            api_services = start(self._list("aggregated APIs", "/apis/apiregistration.k8s.io/v1/apiservices"))
            routes = start(self._list("model routes", f"/apis/{kthena.NETWORKING}/modelroutes"))
            hyper_nodes, counts_roles = start(self._hyper_nodes()), start(self._counts_roles())
            namespace = start(self._try("namespace", cluster.get(f"/api/v1/namespaces/{space}"), None))
            secrets, denied, agents = start(self._secrets()), start(self._denied()), start(self._agents())
            down, services = start(self._webhooks_down()), start(self._services())
        return Inventory(
            version=version,
            kinds={group: read.result() for group, read in kinds.items() if read.result()},
            denied=denied.result(),
            namespace=namespace.result(),
            nodes=tuple(nodes.result()),
            pods=tuple(
                pod for pod in pods.result() if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")
            ),
            claims=tuple(claims.result()),
            secrets=secrets.result(),
            quotas=tuple(quotas.result()),
            services=services.result(),
            api_services=tuple(api_services.result()),
            model_routes=tuple(routes.result()),
            hyper_nodes=tuple(hyper_nodes.result()),
            counts_roles=counts_roles.result(),
            webhooks_down=down.result(),
            network_agents=agents.result(),
            blind=tuple(self._blind),
        )

    async def _try(self, what: str, reading: Coroutine[Any, Any, T], otherwise: T) -> T:
        try:
            return await reading
        except SmokeError:
            self._blind.append(what)
            return otherwise

    async def _list(self, what: str, path: str) -> list[Object]:
        return await self._try(what, self._cluster.items(path), [])

    async def _hyper_nodes(self) -> list[Object]:
        """Asked for only where a group may span tiers of them: nobody else needs the right."""
        if self._settings.kthena.topology_tier is None:
            return []
        return await self._list(volcano.HYPER_NODES, f"/apis/{volcano.TOPOLOGY}/hypernodes")

    async def _counts_roles(self) -> bool | None:
        """By the published schema, which every authenticated user may read; definitions themselves need a right of their own."""
        reply = await self._cluster.call("GET", f"/openapi/v3/apis/{volcano.SCHEDULING}")
        return f'"{volcano.ROLE_MINIMUM}"' in reply.text if reply.status == 200 else None

    async def _kinds(self, group_version: str) -> frozenset[str]:
        found = await self._try(group_version, self._cluster.get(f"/apis/{group_version}"), None)
        return frozenset(each["kind"] for each in (found or {}).get("resources", ()))

    async def _secrets(self) -> frozenset[str]:
        """Names alone: the API server is asked for metadata, so no value ever arrives."""
        reply = await self._cluster.call("GET", self._cluster.path("secrets"), accept=METADATA)
        if reply.status != 200:
            self._blind.append("secrets")
            return frozenset()
        return frozenset(each["metadata"]["name"] for each in json.loads(reply.text)["items"] or ())

    async def _denied(self) -> tuple[str, ...]:
        asked = [(verb, group, resource) for group, resource in self._resources() for verb in VERBS]
        allowed = await asyncio.gather(*(self._may(*each) for each in asked))
        return tuple(
            f"{verb} {resource}{f'.{group}' if group else ''}"
            for (verb, group, resource), may in zip(asked, allowed, strict=True)
            if not may
        )

    def _resources(self) -> Iterator[tuple[str, str]]:
        yield from NAMESPACED
        if any(model.backend == "kthena" for model in self._settings.models):
            for kind, group in kthena.KINDS[self._settings.kthena.release].items():
                plural = kind.lower().removesuffix("y") + "ies" if kind.endswith("y") else f"{kind.lower()}s"
                yield group.partition("/")[0], plural

    async def _may(self, verb: str, group: str, resource: str) -> bool:
        attributes = {"namespace": self._settings.cluster.namespace, "verb": verb, "group": group, "resource": resource}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        reply = await self._cluster.call("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body=body)
        return reply.status not in (200, 201) or bool(reply.json()["status"].get("allowed"))

    async def _agents(self) -> frozenset[str]:
        paths = [f"/apis/apps/v1/namespaces/{space}/daemonsets" for space in SYSTEM]
        lists = await asyncio.gather(*(self._list("DaemonSets", path) for path in paths))
        return frozenset(each["metadata"]["name"] for found in lists for each in found)

    async def _webhooks_down(self) -> tuple[str, ...]:
        path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        found = [each for each in await self._list("webhooks", path) if "kthena" in each["metadata"]["name"]]
        services = {
            (hook["clientConfig"]["service"]["namespace"], hook["clientConfig"]["service"]["name"])
            for each in found
            for hook in each.get("webhooks", ())
            if "service" in hook.get("clientConfig", {})
        }
        answers = [(f"service/{space}/{name}", await self._answers(space, name)) for space, name in sorted(services)]
        return tuple(name for name, answered in answers if not answered)

    async def _answers(self, space: str, name: str) -> bool:
        path = f"/apis/discovery.k8s.io/v1/namespaces/{space}/endpointslices"
        slices = await self._try("endpoints", self._cluster.items(path, {"kubernetes.io/service-name": name}), [])
        return any(
            endpoint.get("conditions", {}).get("ready") for each in slices for endpoint in each.get("endpoints") or ()
        )

    async def _services(self) -> frozenset[str]:
        service, _, rest = self._settings.gateway.kthena_router.partition(".")
        space = rest.partition(".")[0].partition(":")[0]
        found: Any = await self._try(
            "services", self._cluster.get(f"/api/v1/namespaces/{space}/services/{service}"), None
        )
        return frozenset({f"{space}/{service}"}) if found else frozenset()


METADATA: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
