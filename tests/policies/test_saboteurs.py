"""Every rule catches its saboteur, leaves the clean twin alone, and says so when a value is unknown."""

import time

import pytest

from policies.catalogue import RULES
from policies.judge import judge
from policies.objects import Object
from policies.rule import Rule
from tests.policies.builders import deployment, fake_key, found, thing
from tests.policies.saboteurs import CASES

BY_ID = {rule.id: rule for rule in RULES}
WITH_UNKNOWNS = [name for name, case in CASES.items() if case.unknown]


def violations(name: str, which: str):
    case = CASES[name]
    return found(BY_ID[name], *getattr(case, which), facts=case.facts)


def test_every_rule_has_its_saboteur_and_an_id_of_its_own():
    assert len(BY_ID) == len(RULES)
    assert set(CASES) == set(BY_ID)


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


def test_a_thousand_objects_are_judged_in_ten_seconds():
    key = fake_key()
    objects = [Object(deployment(name=f"app-{number}")) for number in range(500)]
    objects += [
        Object(thing("ConfigMap", f"c-{number}", data={"a.toml": "x = 1\ny = 2\n" * 50})) for number in range(499)
    ]
    objects.append(Object(thing("ConfigMap", "last", data={"x": key})))
    start = time.perf_counter()
    caught = judge(RULES, objects, CASES["chips-on-a-pool"].facts)
    assert time.perf_counter() - start < 10
    assert any(violation.rule == "no-key-text" and violation.object == "ConfigMap llm/last" for violation in caught)
