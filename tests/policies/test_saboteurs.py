"""Every rule catches its saboteur, leaves the clean twin alone, and says so when a value is unknown."""

from copy import deepcopy

import pytest

from policies.catalogue import RULES
from policies.judge import judge
from policies.objects import Object
from policies.rule import Rule
from tests.policies.builders import deployment, fake_key, found, thing
from tests.policies.saboteurs import CASES, USER, Thing, api_service
from tests.policies.saboteurs import facts as facts_of

BY_ID = {rule.id: rule for rule in RULES}
WITH_UNKNOWNS = [name for name, case in CASES.items() if case.unknown]


def as_object(one: Thing) -> Object:
    return one if isinstance(one, Object) else Object(one)


def violations(name: str, which: str):
    case = CASES[name]
    return found(BY_ID[name], *getattr(case, which), facts=case.facts)


def test_every_rule_has_its_saboteur_and_an_id_of_its_own():
    assert len(BY_ID) == len(RULES)
    assert set(CASES) == set(BY_ID)


def test_every_rule_has_a_violation_a_clean_twin_and_an_unknown_value():
    lacking = {name for name, case in CASES.items() if not (case.bad and case.good and case.unknown)}
    assert lacking == set()


def wrapped(one: Object) -> Object:
    """The same pod inside a template of a custom resource, as ModelServing has them."""
    body = deepcopy(dict(one.body))
    template = body["spec"].pop("template")
    roles = [{"name": "r", "replicas": 1, "entryTemplate": template}]
    more = {"kind": "ModelServing", "apiVersion": "workload.serving.volcano.sh/v1alpha1"}
    return Object(body | more | {"spec": body["spec"] | {"template": {"roles": roles}}})


IN_PODS = [
    name
    for name, case in CASES.items()
    if any("template" in (as_object(one).body.get("spec") or {}) for one in case.bad)
]
BY_KIND = {"selectors-disjoint", "selectors-match", "rollout-fits", "scaled-without-replicas"}
"""Rules about Deployments and what owns or selects them; a ModelServing is owned and rolled out by Kthena."""


@pytest.mark.parametrize("name", [name for name in IN_PODS if name not in BY_KIND])
def test_a_pod_in_a_custom_resource_is_judged_like_any_other(name):
    case = CASES[name]
    hidden = [wrapped(one) if one.kind == "Deployment" else one for one in map(as_object, case.bad)]
    assert "mandatory" in {v.enforcement for v in found(BY_ID[name], *hidden, facts=case.facts)}


def test_rules_by_kind_are_all_there_is_beside():
    assert set(IN_PODS) >= BY_KIND
    assert len(IN_PODS) - len(BY_KIND) > 10


@pytest.mark.parametrize("name", CASES)
def test_the_saboteur_is_caught_where_it_did_it(name):
    caught = violations(name, "bad")
    assert [violation.enforcement for violation in caught] == ["mandatory"] * len(caught)
    assert any(CASES[name].path in violation.path for violation in caught), [violation.path for violation in caught]
    assert all(violation.rule == name and violation.message and violation.object for violation in caught)


@pytest.mark.parametrize("name", CASES)
def test_the_clean_twin_is_left_alone(name):
    assert violations(name, "good") == []


@pytest.mark.parametrize("name", WITH_UNKNOWNS)
def test_an_unknown_value_is_noted_and_stops_nothing(name):
    noted = violations(name, "unknown")
    assert noted
    assert all("unknown" in violation.message for violation in noted)
    assert {violation.enforcement for violation in noted} == {"advisory"}


@pytest.mark.parametrize("name", WITH_UNKNOWNS)
def test_an_unknown_value_does_not_hide_the_saboteur_beside_it(name):
    case = CASES[name]
    both = [*case.unknown, *case.bad]
    caught = found(BY_ID[name], *both, facts=case.facts)
    assert "mandatory" in {violation.enforcement for violation in caught}


def test_a_stack_that_uses_anothers_cluster_scope_declares_no_api():
    (violation,) = found(BY_ID["one-api-owner"], api_service(), facts=facts_of(USER))
    assert "clusterScope own" in violation.message


def test_a_relaxed_rule_only_advises_in_dev():
    relaxed = [rule for rule in RULES if rule.relaxed_in_dev]
    assert relaxed
    for rule in relaxed:
        assert (rule.enforcement("dev"), rule.enforcement("pre"), rule.enforcement("prod")) == (
            "advisory",
            "mandatory",
            "mandatory",
        )


def test_key_hygiene_is_mandatory_everywhere():
    assert all(not rule.relaxed_in_dev for rule in RULES if rule.concern == "key-hygiene")


def test_a_rule_has_exactly_one_check():
    def checks(rule: Rule) -> int:
        return (rule.each is not None) + (rule.all is not None)

    assert {checks(rule) for rule in RULES} == {1}


def test_one_bad_object_is_found_among_a_thousand():
    key = fake_key()
    objects = [Object(deployment(name=f"app-{number}")) for number in range(500)]
    objects += [
        Object(thing("ConfigMap", f"c-{number}", data={"a.toml": "x = 1\ny = 2\n" * 50})) for number in range(499)
    ]
    objects.append(Object(thing("ConfigMap", "last", data={"x": key})))
    caught = judge(RULES, objects, CASES["chips-on-a-pool"].facts)
    assert {violation.object for violation in caught if violation.rule == "no-key-text"} == {"ConfigMap llm/last"}
