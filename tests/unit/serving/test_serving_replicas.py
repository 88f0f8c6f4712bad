"""Replicas that Kthena scales survive every update, and are no change by themselves."""

import copy
from typing import Any

import pulumi
import pytest

from components.kthena.component import KthenaServing, KthenaServingArgs
from components.release import release_digest
from rules.serving_replicas import DIGEST, Running, changed, running, with_digest, with_replicas
from settings.autoscaling import EngineScaling
from settings.models import ModelSettings
from tests.unit.serving.stacks import stack
from tests.unit.serving.test_kthena_objects import built

BOUNDS = {"prefill": (1, 4), "decode": (1, 4)}


def serving(prefill: int = 1, decode: int = 1, **more: Any) -> dict[str, Any]:
    roles = [{"name": "prefill", "replicas": prefill}, {"name": "decode", "replicas": decode}]
    return {"kind": "ModelServing", "metadata": {"name": "big"}, "spec": {"template": {"roles": roles}} | more}


def replicas(manifest: dict[str, Any]) -> dict[str, int]:
    return {role["name"]: role["replicas"] for role in manifest["spec"]["template"]["roles"]}


def test_replicas_alone_are_no_change():
    now = running(with_digest(serving(decode=3)))
    assert not changed(with_digest(serving()), now)
    assert changed(with_digest(serving(), "registry"), now)
    assert changed(with_digest(serving(recoveryPolicy="None")), now)


def test_what_was_applied_before_there_were_digests_counts_as_changed():
    assert changed(with_digest(serving()), running(serving()))
    assert changed(with_digest(serving()), None)


def test_an_update_carries_the_replicas_that_run():
    now = running(with_digest(serving(prefill=2, decode=3)))
    assert replicas(with_replicas(serving(), now, BOUNDS)) == {"prefill": 2, "decode": 3}


@pytest.mark.parametrize(("runs", "applied"), [(0, 1), (1, 1), (4, 4), (9, 4)])
def test_replicas_stay_within_the_scalers_bounds(runs: int, applied: int):
    now = Running(digest=None, replicas={"prefill": runs, "decode": 1})
    assert replicas(with_replicas(serving(), now, BOUNDS))["prefill"] == applied


def test_a_role_that_is_new_begins_with_its_own_replicas():
    now = Running(digest=None, replicas={"decode": 3})
    assert replicas(with_replicas(serving(prefill=2), now, BOUNDS)) == {"prefill": 2, "decode": 3}


def test_the_manifest_given_is_left_as_it_is():
    given = serving()
    before = copy.deepcopy(given)
    with_replicas(with_digest(given), Running(digest=None, replicas={"decode": 3}), BOUNDS)
    assert given == before


class Declared:
    """One ModelServing as the component declares it, and what of it Pulumi is told to leave alone."""

    def __init__(self, declare_stack: Any, now: Running | None, scaled: bool = True, **engine: Any) -> None:
        values = stack()
        values["models"][0]["engine"] = engine
        settings, plans = built(values)
        model: ModelSettings = settings.models[0]
        scaling = EngineScaling(max_replicas=4) if scaled else None
        args = KthenaServingArgs(
            model=model, engines=tuple(plans), kthena=settings.kthena, scaling=scaling, running=now
        )
        digests: list[str] = []

        def program(context: Any) -> None:
            made = KthenaServing("big", args, context).resources.serving
            release_digest(context).apply(digests.append)
            assert isinstance(made, pulumi.CustomResource)

        self.manifest = declare_stack(program).created("ModelServing")["big"]
        self.release = digests[0]

    @property
    def annotations(self) -> dict[str, str]:
        return self.manifest["metadata"]["annotations"]


def test_a_changed_model_is_applied_with_its_live_replicas_and_an_unchanged_one_is_no_release(declare_stack: Any):
    first = Declared(declare_stack, None)
    live = Running(digest=first.annotations[DIGEST], replicas={"prefill": 2, "decode": 3})
    same = Declared(declare_stack, live)
    assert replicas(same.manifest) == replicas(first.manifest), "Pulumi ignores them: it applies nothing"
    assert same.release == first.release
    other = Declared(declare_stack, live, maxNumSeqs=7)
    assert replicas(other.manifest) == {"prefill": 2, "decode": 3}
    assert other.release != first.release
    later = Running(digest=other.annotations[DIGEST], replicas={"prefill": 1, "decode": 1})
    assert Declared(declare_stack, later, maxNumSeqs=7).release == other.release, "scaled in: nothing was released"


def test_a_model_that_nothing_scales_has_the_replicas_of_its_settings(declare_stack: Any):
    fixed = Declared(declare_stack, None, scaled=False)
    assert replicas(fixed.manifest) == {"prefill": 1, "decode": 1}
    assert DIGEST not in fixed.annotations


def test_the_list_of_roles_is_taken_back_from_whoever_wrote_in_it(declare_stack: Any):
    """Kthena's autoscaler (or a drill) owns all of an atomic list after one write; without force, `up` is refused from then on."""
    for scaled in (True, False):
        assert Declared(declare_stack, None, scaled).annotations["pulumi.com/patchForce"] == "true"
