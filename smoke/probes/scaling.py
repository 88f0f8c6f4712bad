"""What scales the engines: HPAs (KEDA makes them too) for native models, Kthena's policies for its own."""

from datetime import UTC, datetime

from rules.kthena import WORKLOAD
from rules.metrics.served import EXTERNAL_GROUP, EXTERNAL_VERSION, GROUP, VERSION
from settings.settings import Settings
from smoke import kthena
from smoke.cluster import Cluster, Object
from smoke.doctor.facts import condition
from smoke.errors import TemporaryError
from smoke.probe import LiveStack, Outcome, passed


def natively(settings: Settings) -> bool:
    """Whether HPAs scale any engine."""
    return settings.autoscaling.engines.enabled and any(model.backend == "native" for model in settings.models)


async def active(stack: LiveStack, cluster: Cluster) -> Outcome:
    """Every scaler acts. Raises TemporaryError naming the first that does not."""
    count = 0
    if natively(stack.settings):
        count += await _active_hpas(cluster)
    if kthena.scaled(stack.settings):
        count += await _active_policies(stack.settings, cluster)
    return passed(count, "scalers", count)


async def metrics(stack: LiveStack, cluster: Cluster) -> Outcome:
    """Every metric that an HPA reads has values. Raises TemporaryError naming the first that has none."""
    specs = [metric for hpa in await _hpas(cluster) for metric in hpa["spec"].get("metrics", ())]
    wanted = sorted({place for spec in specs if (place := _place(spec, cluster.namespace))})
    if not wanted:
        raise TemporaryError("no scaler reads a metric", "run pulumi up")
    for name, path, selector in wanted:
        reply = await cluster.call("GET", path, params={"labelSelector": selector} if selector else None)
        if reply.status != 200 or not reply.json().get("items"):
            raise TemporaryError(
                f"the metrics API has no value of {name} (status {reply.status})",
                "see the log of the capacity controller, or with KEDA of its operator",
            )
    return passed(len(wanted), "metrics", len(wanted))


def _place(metric: Object, namespace: str) -> tuple[str, str, str] | None:
    """A metric's name, and URL path and label selector of its values: those of pods are ours, external ones KEDA's."""
    if pods := metric.get("pods"):
        name = pods["metric"]["name"]
        return name, f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/pods/*/{name}", ""
    if external := metric.get("external"):
        name = external["metric"]["name"]
        labels = (external["metric"].get("selector") or {}).get("matchLabels") or {}
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        return name, f"/apis/{EXTERNAL_GROUP}/{EXTERNAL_VERSION}/namespaces/{namespace}/{name}", selector
    return None


async def _hpas(cluster: Cluster) -> list[Object]:
    hpas = await cluster.items(cluster.path("horizontalpodautoscalers", group="autoscaling/v2"))
    if not hpas:
        raise TemporaryError("autoscaling is declared, and there is no scaler", "run pulumi up")
    return hpas


async def _active_hpas(cluster: Cluster) -> int:
    hpas = await _hpas(cluster)
    for hpa in hpas:
        state = condition(hpa, "ScalingActive")
        if state is None or state["status"] != "True":
            said = state.get("message", "") if state else "it has no status yet"
            raise TemporaryError(
                f"scaler {hpa['metadata']['name']} is not active: {said}", "run python -m smoke doctor"
            )
    return len(hpas)


async def _active_policies(settings: Settings, cluster: Cluster) -> int:
    kind, wanted = kthena.scalers(settings)
    found = await cluster.items(cluster.path(kthena.RESOURCES[kind], group=WORKLOAD))
    for name, said in kthena.unscaled(settings, found, datetime.now(UTC)):
        raise TemporaryError(f"scaler {name} is not active: {said}", "run python -m smoke doctor")
    return len(wanted)
