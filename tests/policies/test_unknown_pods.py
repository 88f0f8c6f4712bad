"""What a preview doesn't know of a pod silences no rule that would judge it: each says that it can't tell yet, and where."""

from copy import deepcopy
from typing import Any

import pytest

from policies.catalogue import RULES
from policies.objects import Object
from policies.rule import UNDECIDED, Violation
from policies.unknown import UNKNOWN
from tests.policies.builders import deployment, found, thing
from tests.policies.saboteurs import CASES
from tests.policies.test_saboteurs import BY_ID, IN_PODS, as_object

PLACES = (
    "spec",
    "spec.template",
    "spec.template.spec",
    "spec.template.spec.containers",
    "spec.template.spec.containers[0]",
)


def hidden(one: Object, place: str) -> Object:
    """The object with an unknown value at a place; as it is where it has no pod."""
    body: dict[str, Any] = deepcopy(dict(one.body))
    if one.kind != "Deployment":
        return one
    *way, last = place.removesuffix("[0]").split(".")
    at = body
    for step in way:
        at = at[step]
    at[last] = [UNKNOWN, *at[last][1:]] if place.endswith("[0]") else UNKNOWN
    return Object(body, type=one.type, urn=one.urn)


def said(name: str, place: str) -> list[Violation]:
    return found(BY_ID[name], *(hidden(as_object(one), place) for one in CASES[name].bad), facts=CASES[name].facts)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "name", [name for name in IN_PODS if any(as_object(one).kind == "Deployment" for one in CASES[name].bad)]
)
def test_no_rule_is_silent_about_a_pod_that_a_preview_cannot_see(name: str, place: str):
    assert said(name, place)


@pytest.mark.parametrize("name", [rule.id for rule in RULES if rule.reads_pods])
def test_a_rule_for_pods_names_the_place_that_is_unknown_and_stops_nothing(name: str):
    notes = found(BY_ID[name], Object({**deployment(), "spec": UNKNOWN}))
    assert ("spec", UNDECIDED, "advisory") in {(one.path, one.message, one.enforcement) for one in notes}


@pytest.mark.parametrize("name", [rule.id for rule in RULES if rule.reads_pods])
@pytest.mark.parametrize("kind", ["ConfigMap", "Service", "NetworkPolicy", "ModelRoute"])
def test_an_object_that_can_have_no_pod_is_not_asked_for_one(name: str, kind: str):
    assert [one for one in found(BY_ID[name], thing(kind, spec=UNKNOWN)) if one.path == "spec"] == []


def test_a_template_of_a_custom_resource_may_be_a_pod():
    body = thing("ModelServing", spec={"template": {"roles": [{"name": "prefill", "entryTemplate": UNKNOWN}]}})
    (path,) = Object(body).unknown_pods
    assert path == "spec.template.roles[0].entryTemplate"


def test_a_pod_is_known_by_its_containers_though_the_first_is_unknown():
    body = deployment()
    body["spec"]["template"]["spec"]["containers"].insert(0, UNKNOWN)
    (pod,) = Object(body).pods
    assert [path for path, _ in pod.containers()] == ["spec.template.spec.containers[1]"]
    assert Object(body).unknown_pods == ("spec.template.spec.containers[0]",)


def test_unknown_metadata_hides_no_object():
    one = Object(
        {**deployment(), "metadata": UNKNOWN}, urn="urn:pulumi:dev::moonstack::kubernetes:apps/v1:Deployment::app"
    )
    assert one.ref == "Deployment app"
    assert one.space is None


def test_a_pod_whose_containers_are_unknown_is_judged_by_the_rest():
    body = deployment()
    body["spec"]["template"]["spec"] |= {"containers": UNKNOWN, "automountServiceAccountToken": True}
    assert [pod.path for pod in Object(body).pods] == ["spec.template.spec"]
