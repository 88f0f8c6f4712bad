"""Pods that don't start, don't stay, or don't fit."""

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Final

from rules import names
from smoke.cluster import ready
from smoke.doctor.diagnosis import Diagnosis, Hit
from smoke.doctor.facts import Facts, condition, containers, name_of, waiting

CRASHES: Final = 3
"""Restarts before a container counts as crashing: one or two happen when a master is replaced."""
_STORE: Final = re.compile(r"mooncake|master|segment|metadata", re.IGNORECASE)


def chips_missing(facts: Facts) -> Iterator[Hit]:
    """Pending for want of an extended resource."""
    yield from _unschedulable(facts, lambda message: re.search(r"Insufficient \S+/\S+", message) is not None)


def no_node_fits(facts: Facts) -> Iterator[Hit]:
    """Pending for labels, taints, CPU or memory."""
    yield from _unschedulable(facts, lambda message: re.search(r"Insufficient \S+/\S+", message) is None)


def _unschedulable(facts: Facts, wanted: Callable[[str], bool]) -> Iterator[Hit]:
    for pod in facts.pods:
        scheduled = condition(pod, "PodScheduled")
        if scheduled and scheduled["status"] == "False" and wanted(scheduled.get("message", "")):
            yield Hit(name_of(pod), scheduled.get("message", scheduled.get("reason", "")))


def mount_fails(facts: Facts) -> Iterator[Hit]:
    """An object that is mounted does not exist (C9)."""
    alive = {pod["metadata"]["name"] for pod in facts.pods if pod["status"].get("phase") == "Pending"}
    seen: set[str] = set()
    for event in facts.events:
        pod = event.get("involvedObject", {}).get("name", "")
        if event.get("reason") == "FailedMount" and pod in alive and pod not in seen:
            seen.add(pod)
            yield Hit(f"pod/{pod}", event.get("message", ""))


def image_missing(facts: Facts) -> Iterator[Hit]:
    """The kubelet can't get an image."""
    for pod in facts.pods:
        for reason, message in waiting(pod):
            if reason in ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"):
                yield Hit(name_of(pod), message or reason)


def configuration_missing(facts: Facts) -> Iterator[Hit]:
    """A Secret or ConfigMap that an environment variable refers to does not exist."""
    for pod in facts.pods:
        for reason, message in waiting(pod):
            if reason == "CreateContainerConfigError":
                yield Hit(name_of(pod), message)


def engine_without_store(facts: Facts) -> Iterator[Hit]:
    """A crashing engine whose last words are about the store (C9)."""
    yield from (Hit(name, seen) for name, seen in _crashing(facts) if _STORE.search(seen))


def crashes(facts: Facts) -> Iterator[Hit]:
    """Any other container that ends again and again."""
    yield from (Hit(name, seen) for name, seen in _crashing(facts) if not _STORE.search(seen))


def _crashing(facts: Facts) -> Iterator[tuple[str, str]]:
    for pod in facts.pods:
        for container in containers(pod):
            last = container.get("lastState", {}).get("terminated", {})
            looping = container.get("state", {}).get("waiting", {}).get("reason") == "CrashLoopBackOff"
            if (looping or container.get("restartCount", 0) >= CRASHES) and last.get("reason") != "OOMKilled":
                code, words = last.get("exitCode", "?"), str(last.get("message", ""))[-300:]
                yield name_of(pod), f"container {container['name']} ended with code {code} {words}".rstrip()


def not_ready(facts: Facts) -> Iterator[Hit]:
    """Running and not Ready: it loads, or its probe fails. Finished pods of Jobs are no pods that should be Ready."""
    for pod in facts.pods:
        if pod["status"].get("phase") == "Running" and not ready(pod) and not waiting(pod):
            if "deletionTimestamp" in pod["metadata"]:
                continue
            started = datetime.fromisoformat(pod["status"]["startTime"])
            yield Hit(name_of(pod), f"running for {(facts.now - started).total_seconds():.0f} s and not Ready")


def out_of_memory(facts: Facts) -> Iterator[Hit]:
    """The kernel ended a container at its memory limit."""
    for pod in facts.pods:
        for container in containers(pod):
            states = (container.get("lastState", {}), container.get("state", {}))
            if any(state.get("terminated", {}).get("reason") == "OOMKilled" for state in states):
                yield Hit(name_of(pod), f"container {container['name']}, {container.get('restartCount', 0)} restarts")


def rollout_stuck(facts: Facts) -> Iterator[Hit]:
    """A Deployment gave up waiting for its new pods."""
    for deployment in facts.deployments:
        progressing = condition(deployment, "Progressing")
        if progressing and progressing["status"] == "False":
            yield Hit(name_of(deployment), progressing.get("message", ""))


def node_not_ready(facts: Facts) -> Iterator[Hit]:
    """A node that carries our pods is gone."""
    used = {pod["spec"].get("nodeName") for pod in facts.pods}
    for node in facts.nodes:
        state = condition(node, "Ready")
        if node["metadata"]["name"] in used and (state is None or state["status"] != "True"):
            yield Hit(name_of(node), state.get("message", "") if state else "it reports nothing")


CATALOGUE: Final = (
    Diagnosis(
        id="chips-insufficient", title="Pending: Insufficient chips", severity="error",
        cause="no node has the chips that the pod asks for",
        fix="check the device plugin and the resource's name (driverStack of the pool), free chips, or lower replicas",
        look="kubectl -n NS describe pod NAME; kubectl describe nodes | grep -A8 Allocatable",
        source="requirement B10", detect=chips_missing,
    ),
    Diagnosis(
        id="no-node-fits", title="Pending: no node fits", severity="error",
        cause="labels, taints, CPU or memory keep the pod from every node",
        fix="compare the pod's nodeSelector with the nodes' labels (python -m smoke preflight), and its requests with free room",
        look="kubectl -n NS describe pod NAME; kubectl get nodes --show-labels", source="requirement B8", detect=no_node_fits,
    ),
    Diagnosis(
        id="mount-fails", title="FailedMount: a mounted object is missing", severity="error",
        cause="a ConfigMap, Secret or volume that the pod mounts does not exist",
        fix="pulumi up restores what the stack declares; a volume claim must be Bound",
        look="kubectl -n NS get events --field-selector reason=FailedMount",
        source="requirement C9", detect=mount_fails,
    ),
    Diagnosis(
        id="image-missing", title="An image can't be pulled", severity="error",
        cause="the image does not exist, or the pull secret does not fit",
        fix="correct moonstack:cluster.images or cluster.imagePullSecret; locally: make up builds and imports the images",
        look="kubectl -n NS describe pod NAME", source="requirement C9", detect=image_missing,
    ),
    Diagnosis(
        id="configuration-missing", title="A container's configuration is missing", severity="error",
        cause="a Secret or ConfigMap that the container refers to does not exist", fix="pulumi up",
        look="kubectl -n NS describe pod NAME", source="requirement A2", detect=configuration_missing,
    ),
    Diagnosis(
        id="store-component-missing", title="CrashLoopBackOff: the engine can't reach or load Mooncake", severity="error",
        cause="the engine ends while it sets up the store: its package is missing in the image, or the master does not answer",
        fix=f"kubectl -n NS get deploy {names.KV_MASTER} must be Ready before engines start; check the image's mooncake package",
        look="kubectl -n NS logs NAME --previous --tail=50", source="requirement C9", detect=engine_without_store,
    ),
    Diagnosis(
        id="crash-loop", title="CrashLoopBackOff", severity="error", cause="a container ends again and again",
        fix="read its last words: kubectl -n NS logs NAME --previous", look="kubectl -n NS logs NAME --previous --tail=50",
        source="requirement C9", detect=crashes,
    ),
    Diagnosis(
        id="not-ready", title="Running, but not Ready", severity="warning",
        cause="it still loads its weights, or its readiness probe fails",
        fix="wait for the load (its time is in moonstack:models weights.size over loadBandwidth), then read its log",
        look="kubectl -n NS describe pod NAME; kubectl -n NS logs NAME --tail=50", source="requirement B4", detect=not_ready,
    ),
    Diagnosis(
        id="out-of-memory", title="A container was ended at its memory limit", severity="error",
        cause="weights, KV space and store segment together exceed the pod's memory",
        fix="raise the role's memory, or lower kvStore.segment, kvStore.buffer or maxNumSeqs",
        look="kubectl -n NS describe pod NAME", source="kvcache-ai/Mooncake store guide (segments are resident)", detect=out_of_memory,
    ),
    Diagnosis(
        id="rollout-stuck", title="A rollout does not go on", severity="error",
        cause="new pods did not get Ready in time, or find no free chips beside the old ones",
        fix="free a chip or roll without surge; then kubectl -n NS rollout restart, or pulumi up",
        look="kubectl -n NS rollout status deployment NAME", source="llm-d-incubation/llm-d-modelservice#246", detect=rollout_stuck,
    ),
    Diagnosis(
        id="node-not-ready", title="A node with our pods is not Ready", severity="error",
        cause="the kubelet of the node does not report", fix="repair or drain the node; its pods move after five minutes",
        look="kubectl describe node NAME", source="Kubernetes node lifecycle", detect=node_not_ready,
    ),
)  # fmt: skip
