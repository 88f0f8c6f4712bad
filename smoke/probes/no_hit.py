"""Why a store was not hit: the counters and the master say which of the known causes it is."""

from collections.abc import Iterable

from rules import labels, names, ports
from settings.models import ModelSettings
from smoke.cluster import Cluster, ready
from smoke.engines import EXTERNAL_QUERIES, Counters, Engines, rise
from smoke.errors import SmokeError
from smoke.probe import Outcome, failed


async def no_hit(
    engines: Engines, model: ModelSettings, what: str, before: Counters, after: Counters, pods: Iterable[str]
) -> Outcome:
    """The failed outcome of a probe that saw no hit, with the likeliest cause."""
    cause, fix = await _cause(engines.cluster, model, rise(before, after, EXTERNAL_QUERIES, pods))
    return failed(f"{what}: {cause}", fix, 0, "tokens from the store", 1)


async def _cause(cluster: Cluster, model: ModelSettings, queries: float) -> tuple[str, str]:
    if queries == 0:
        return (
            "the engines never asked the store, so its connector is not active",
            f"see the engine's start for 'MooncakeStoreConnector', and moonstack:models connector of {model.name}",
        )
    if problem := await _store_problem(cluster):
        return problem
    if len(identities := await _identities(cluster, model)) > 1:
        return (
            f"the engines have {len(identities)} different KV identities: they can't read each other's blocks",
            "wait for the rollout to end; same revision, dtype, block size and engine version everywhere",
        )
    return (
        "the engines asked the store and found nothing: keys differ (hash seed, block size, dtype, tensor parallel size), "
        "or blocks are evicted before they are read",
        "compare PYTHONHASHSEED and engine arguments of the roles; raise kvStore.segment",
    )


async def _store_problem(cluster: Cluster) -> tuple[str, str] | None:
    masters = [pod for pod in await cluster.pods({"app.kubernetes.io/name": names.KV_MASTER}) if ready(pod)]
    if not masters:
        return ("no Mooncake master is Ready", f"kubectl -n {cluster.namespace} describe deploy {names.KV_MASTER}")
    try:
        reply = await cluster.through_pod(masters[0]["metadata"]["name"], ports.KV_MASTER_METRICS, "/get_all_segments")
    except SmokeError:
        return None
    if reply.status == 200 and not reply.text.strip():
        return (
            "the Mooncake master has no segment: no engine is registered with it",
            "see the engines' log for the master's address; engines that started before the master gave up after 85 s",
        )
    return None


async def _identities(cluster: Cluster, model: ModelSettings) -> set[str]:
    """Of the engines alone: routers carry the model's label too."""
    pods = await cluster.pods({labels.MODEL: names.slug(model.name)})
    engines = [pod["metadata"] for pod in pods if ready(pod) and labels.ROLE in pod["metadata"]["labels"]]
    return {engine.get("annotations", {}).get(labels.KV_IDENTITY, "") for engine in engines}
