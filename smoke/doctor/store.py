"""Engines and the KV store: who is registered, who shares with whom, and whether anything is found."""

import json
from collections.abc import Iterator
from typing import Any, Final

from rules import labels, names, timing
from settings.models import ModelSettings
from settings.sharing import sharing_models
from smoke.cluster import ready
from smoke.doctor.diagnosis import Diagnosis, Hit
from smoke.doctor.facts import Facts, Object, label, name_of
from smoke.engines import EXTERNAL_HITS, EXTERNAL_QUERIES

SILENT_QUERIES: Final = 20_000
"""Prompt tokens asked for without one hit, before it counts as silent: one long prompt alone proves nothing."""
_PUT_FAILURES: Final = "vllm:mooncake_store_operation_failed_keys_total"


def _engines(facts: Facts, model: ModelSettings) -> list[Object]:
    return [pod for pod in facts.pods if label(pod, labels.MODEL) == names.slug(model.name) and label(pod, labels.ROLE)]


def _sharing(facts: Facts) -> Iterator[tuple[ModelSettings, list[Object]]]:
    if not facts.settings.kv_store.enabled:
        return
    for model in facts.settings.models:
        if model.connector != "none":
            yield model, [pod for pod in _engines(facts, model) if ready(pod)]


def master_down(facts: Facts) -> Iterator[Hit]:
    """A missing master makes requests slow, not failed: each call of it waits about ten seconds."""
    engines = [pod for _, pods in _sharing(facts) for pod in pods]
    masters = [pod for pod in facts.pods if label(pod, "app.kubernetes.io/name") == names.KV_MASTER and ready(pod)]
    if engines and not masters:
        yield Hit(f"deployment/{names.KV_MASTER}", "no pod of it is Ready")


def clients_not_registered(facts: Facts) -> Iterator[Hit]:
    """The master is healthy with no client at all, so clients are counted: engines of its transport, and pods that hold the store.

    It counts those that lend it something: an engine that lends nothing is no client of its (0 of 1 after 96 operations, measured).
    """
    settings = facts.settings
    lends = settings.kv_store.engines_lend(settings.kv_store.protocol)
    mine = sharing_models(settings, settings.kv_store.protocol) if lends else ()
    engines = sum(len(pods) for model, pods in _sharing(facts) if model.name in mine)
    held = sum(1 for pod in facts.pods if label(pod, "app.kubernetes.io/name") == names.KV_STORE and ready(pod))
    clients = facts.store.get("master_active_clients")
    if clients is not None and clients < engines + held:
        there = f"{engines} Ready engines" + (f", {held} Ready store pods" if held else "")
        yield Hit(f"deployment/{names.KV_MASTER}", f"{clients:.0f} clients, {there}")


def never_a_hit(facts: Facts) -> Iterator[Hit]:
    """All Ready, hit rate zero."""
    for model, pods in _sharing(facts):
        counters = [facts.counters.get(pod["metadata"]["name"], {}) for pod in pods]
        asked = sum(counter.get(EXTERNAL_QUERIES, 0) for counter in counters)
        if asked >= SILENT_QUERIES and not sum(counter.get(EXTERNAL_HITS, 0) for counter in counters):
            yield Hit(f"model/{model.name}", f"{asked:.0f} tokens asked for, none found")


def identities_differ(facts: Facts) -> Iterator[Hit]:
    """Engines of one model that can't read each other's blocks."""
    for model, pods in _sharing(facts):
        seen = {pod["metadata"].get("annotations", {}).get(labels.KV_IDENTITY) for pod in pods}
        if len(seen) > 1:
            yield Hit(f"model/{model.name}", f"{len(seen)} identities among {len(pods)} engines")


def seeds_differ(facts: Facts) -> Iterator[Hit]:
    """PYTHONHASHSEED decides cache keys with some hash functions."""
    for model, pods in _sharing(facts):
        seeds = {_environment(pod).get("PYTHONHASHSEED") for pod in pods}
        if len(seeds) > 1 or seeds == {None}:
            yield Hit(f"model/{model.name}", f"PYTHONHASHSEED is {', '.join(sorted(map(str, seeds)))}")


def load_failure_is_fatal(facts: Facts) -> Iterator[Hit]:
    """With vLLM's default, removing one pod breaks requests on healthy ones."""
    for _, pods in _sharing(facts):
        for pod in pods:
            transfer = _transfer(pod)
            if transfer is not None and transfer.get("kv_load_failure_policy") != "recompute":
                yield Hit(
                    name_of(pod),
                    f"kv_load_failure_policy is {transfer.get('kv_load_failure_policy', 'fail (default)')}",
                )


def puts_fail(facts: Facts) -> Iterator[Hit]:
    """The store is too small for what is put into it."""
    for pod, counter in facts.counters.items():
        if counter.get(_PUT_FAILURES, 0) > 0:
            yield Hit(f"pod/{pod}", f"{counter[_PUT_FAILURES]:.0f} blocks could not be stored")


def ends_too_early(facts: Facts) -> Iterator[Hit]:
    """Less grace than the longest request cuts streams at every scale-down."""
    for model in facts.settings.models:
        wanted = timing.grace_seconds(model.longest_request_seconds)
        for pod in _engines(facts, model):
            grace = pod["spec"].get("terminationGracePeriodSeconds", 30)
            if grace < wanted:
                yield Hit(name_of(pod), f"terminationGracePeriodSeconds {grace}, the longest request needs {wanted}")


def _environment(pod: Object) -> dict[str, str]:
    return {one["name"]: one.get("value", "") for c in pod["spec"].get("containers", ()) for one in c.get("env", ())}


def _transfer(pod: Object) -> dict[str, Any] | None:
    for container in pod["spec"].get("containers", ()):
        words = [*container.get("command", ()), *container.get("args", ())]
        if "--kv-transfer-config" in words[:-1]:
            try:
                return json.loads(words[words.index("--kv-transfer-config") + 1])
            except ValueError:
                return None
    return None


CATALOGUE: Final = (
    Diagnosis(
        id="store-master-down", title="The Mooncake master is not Ready", severity="error",
        cause="every request waits for the missing master, so first tokens take 10 seconds and more",
        fix=f"kubectl -n NS rollout restart deployment {names.KV_MASTER}; engines register again by themselves",
        look=f"kubectl -n NS describe deployment {names.KV_MASTER}", source="kvcache-ai/Mooncake#1336", detect=master_down,
    ),
    Diagnosis(
        id="store-engines-missing", title="Engines are not registered with the store", severity="error",
        cause="fewer clients than Ready engines are known to the master; it calls itself healthy even with none",
        fix="kubectl -n NS rollout restart deployment of the engines that are missing; they try only for the first 85 s",
        look=f"kubectl -n NS logs deploy/{names.KV_MASTER} --tail=50", source="kvcache-ai/Mooncake#2246", detect=clients_not_registered,
    ),
    Diagnosis(
        id="store-silent", title="Everything is Ready and nothing is ever found in the store", severity="warning",
        cause="engines compute different keys for equal prompts, or blocks are evicted before they are read",
        fix="python -m smoke run shows which; compare PYTHONHASHSEED, block size, dtype; raise kvStore.segment",
        look="python -m smoke run --stack STACK", source="kvcache-ai/Mooncake llm-d guide; LMCache documentation", detect=never_a_hit,
    ),
    Diagnosis(
        id="store-identities-differ", title="Engines of one model have different KV identities", severity="warning",
        cause="revision, dtype, block size or engine version differ between pods, so they share nothing",
        fix="wait for the rollout to end; if it has, pulumi up", look="kubectl -n NS get pods -o yaml | grep kv-identity",
        source="rules/kv_identity.py", detect=identities_differ,
    ),
    Diagnosis(
        id="hash-seed-differs", title="PYTHONHASHSEED is not one fixed number", severity="warning",
        cause="engines with different seeds can compute different keys for equal prompts",
        fix="pulumi up sets engine.hashSeed on every engine", look="kubectl -n NS get pods -o yaml | grep -A1 PYTHONHASHSEED",
        source="vLLM prefix caching documentation", detect=seeds_differ,
    ),
    Diagnosis(
        id="load-failure-fatal", title="A lost KV block breaks the request", severity="error",
        cause="engines don't recompute what the store has lost, so removing one pod breaks requests on healthy ones",
        fix="pulumi up sets kv_load_failure_policy recompute", look="kubectl -n NS get pods -o yaml | grep kv_load_failure",
        source="vLLM KV transfer configuration", detect=load_failure_is_fatal,
    ),
    Diagnosis(
        id="store-puts-fail", title="Blocks can't be stored", severity="warning", cause="the store has no room, or lost a segment",
        fix="raise kvStore.segment; just after a restart of the master a few are normal",
        look="kubectl get --raw /api/v1/namespaces/NS/pods/NAME:8000/proxy/metrics | grep failed_keys",
        source="kvcache-ai/Mooncake store guide",
        detect=puts_fail,
    ),
    Diagnosis(
        id="grace-too-short", title="Pods end before their requests do", severity="warning",
        cause="the grace period is shorter than the longest request, so scale-down cuts streams",
        fix="pulumi up sets it from longestRequestSeconds", look="kubectl -n NS get pods -o yaml | grep terminationGrace",
        source="volcano-sh/kthena#1589", detect=ends_too_early,
    ),
)  # fmt: skip
