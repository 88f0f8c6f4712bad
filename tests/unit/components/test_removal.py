"""Pulumi waits for every workload's deletion for as long as its pods may take to end, and gives up after 600 s unless told so."""

import json
import runpy
from collections.abc import Callable
from typing import Any

import pulumi
import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.removal import longest_grace, with_removal
from policies.objects import Object
from rules.timing import REMOVAL_MARGIN_SECONDS
from tests.policies.test_clean_stacks import ROOT, state, values
from tests.unit.pulumi_engine import plain, run

__all__ = ["state"]
LONG = 3000
"""Seconds of the longest request, so that whatever drains for it takes longer than Pulumi waits by itself."""

Waits = Callable[[str, dict[str, Any]], dict[str, tuple[float | None, int | None]]]


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    """Declares a stack: kind/name → for how long Pulumi waits for the deletion, and the longest grace of its pods."""
    timeouts: dict[tuple[str, str], str | None] = {}
    original = pulumi.Resource.__init__

    def recorded(
        self: Any, t: str, name: str, custom: bool, props: Any = None, opts: Any = None, *more: Any, **named: Any
    ):
        given = opts.custom_timeouts if opts else None
        timeouts[t, name] = given.delete if given else None
        original(self, t, name, custom, props, opts, *more, **named)

    monkeypatch.setattr(pulumi.Resource, "__init__", recorded)

    def declared(stack: str, groups: dict[str, Any]) -> dict[str, tuple[float | None, int | None]]:
        pulumi.runtime.set_all_config({f"moonstack:{key}": json.dumps(value) for key, value in groups.items()}, [])
        found = {}
        for one in run(lambda: runpy.run_path(str(ROOT / "__main__.py")), stack=stack):
            said = timeouts.get((one.type, one.name))
            graces = [pod.spec.get("terminationGracePeriodSeconds", 30) for pod in Object(plain(one.inputs)).pods]
            seconds = float(said.removesuffix("s")) if said else None
            found[f"{one.type.rpartition(':')[2]}/{one.name}"] = (seconds, max(graces, default=None))
        return found

    return declared


def long_requests(stack: str, backend: str) -> dict[str, Any]:
    """A shipped stack whose requests last, with every workload that the settings can add."""
    groups = values(stack, backend)
    for model in groups["models"]:
        model |= {"longestRequestSeconds": LONG, "prePull": True}
    groups["keys"] = groups["keys"] | {"agent": True}
    if backend == "native" and stack != "dev":
        groups["warmPool"] = {"enabled": True, "replicas": 1, "maxReplicas": 1}
        groups["nodePools"] = [pool | {"count": 100, "rdmaResource": "rdma/hca"} for pool in groups["nodePools"]]
        groups["kvStore"] = groups["kvStore"] | {
            "storePods": {"segment": "64Gi", "pool": groups["nodePools"][-1]["name"]}
        }
    return groups


@pytest.mark.parametrize("backend", ["native", "kthena"])
@pytest.mark.parametrize("stack", ["dev", "pre", "prod"])
def test_no_deletion_of_a_workload_is_given_up_while_its_pods_drain(stack: str, backend: str, waits: Waits):
    found = waits(stack, long_requests(stack, backend))
    workloads = {name: (said, grace) for name, (said, grace) in found.items() if grace is not None}
    short = {name: pair for name, pair in workloads.items() if (pair[0] or 600) < pair[1] + REMOVAL_MARGIN_SECONDS}
    assert short == {}
    [(everything, _)] = [pair for name, pair in found.items() if name.startswith("Namespace/")]
    longest = max(grace for _, grace in workloads.values())
    assert everything is not None and everything >= longest + REMOVAL_MARGIN_SECONDS, (
        "the namespace goes after its pods"
    )
    draining = {name for name, (_, grace) in workloads.items() if grace > LONG}
    assert "Deployment/gateway" in draining
    assert any(name.startswith("ModelServing/" if backend == "kthena" else "Deployment/") for name in draining)
    assert backend == "kthena" or stack == "dev" or any(name.endswith("-warm") for name in draining)


@given(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=4))
def test_the_slowest_pod_of_an_object_counts(graces: list[int]):
    roles = [{"entryTemplate": {"spec": {"containers": [], "terminationGracePeriodSeconds": one}}} for one in graces]
    manifest = {"kind": "ModelServing", "spec": {"template": {"roles": roles}}}
    assert longest_grace(manifest) == max(graces)
    timeouts = with_removal(manifest, pulumi.CustomTimeouts(create="5m"))
    assert timeouts and timeouts.create == "5m" and timeouts.update is None
    assert float((timeouts.delete or "").removesuffix("s")) >= min(2**31 - 1, max(600, max(graces) + 1))


def test_a_pod_that_says_nothing_has_the_grace_of_kubernetes_and_an_object_without_pods_none():
    assert longest_grace({"kind": "Deployment", "spec": {"template": {"spec": {"containers": []}}}}) == 30
    config = {"kind": "ConfigMap", "data": {"a": "b"}}
    assert longest_grace(config) is None and with_removal(config) is None
    given = pulumi.CustomTimeouts(delete="7s")
    assert with_removal({"spec": {"containers": []}}, given) is given, "a timeout of one's own stands"
