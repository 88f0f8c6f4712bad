"""What backend kthena takes and backend native doesn't, and the other way round."""

import pytest

from rules import kthena
from tests.unit.serving.stacks import accepted, problems, refused, stack


def test_generated_pod_names_fit_a_dns_label():
    """volcano-sh/kthena, ModelServing webhook: `<serving>-<groups>-<role>-<replicas>-<workers>` within 63 characters."""
    assert kthena.generated_name_fits("models[0].name", "m" * 32, 1000, "prefill", 10_000, 15) == []
    assert kthena.generated_name_fits("models[0].name", "m", 1, "a-role-too-long", 1, 0)


def test_a_role_on_kthena_has_one_placement():
    values = stack()
    values["models"][0]["decode"] = [values["models"][0]["decode"]] * 2
    assert refused(values, "models[0].decode", "one pod template")


def test_a_group_needs_every_role():
    values = stack()
    values["models"][0]["decode"]["replicas"] = 0
    assert refused(values, "models[0].decode[0].replicas", "every role")


@pytest.mark.parametrize(("key", "value"), [("groups", 2), ("route", {"weight": 50})])
def test_kthenas_own_settings_are_refused_in_backend_native(key: str, value: object):
    values = stack()
    values["models"][1][key] = value
    assert refused(values, f"models[1].{key}", "Kthena")
    values["models"][0][key] = values["models"][1].pop(key)
    assert accepted(values)


def test_an_engine_of_several_pods_needs_kthena():
    values = stack()
    values["models"][1]["prefill"]["nodes"] = 2
    assert refused(values, "models[1].prefill[0].nodes", "Deployment")
    values["models"][1]["backend"] = "kthena"
    assert accepted(values)


def test_a_route_target_is_another_model_on_kthena():
    values = stack()
    values["models"][0]["route"] = {"targets": [{"model": "small", "weight": 10}]}
    assert refused(values, "models[0].route.targets[0].model", "no other model of backend kthena")
    values["models"][1]["backend"] = "kthena"
    assert accepted(values)


def test_weights_of_a_route_must_not_all_be_zero():
    """volcano-sh/kthena, ModelRoute: all-zero weights are no route."""
    values = stack()
    values["models"][0]["route"] = {"weight": 0}
    assert refused(values, "models[0].route.weight", "no request goes anywhere")


def test_gangs_and_tiers_need_volcano():
    values = stack()
    values["kthena"] = {"scheduler": "default-scheduler"}
    assert refused(values, "kthena", "gang needs scheduler volcano")
    values["kthena"] = {"scheduler": "default-scheduler", "gang": False}
    assert accepted(values)
    values["kthena"] |= {"topologyTier": 2}
    assert refused(values, "kthena", "topologyTier needs scheduler volcano")


def test_groups_multiply_the_chips_that_a_pool_must_have():
    values = stack()
    values["models"][0]["groups"] = 3
    assert any("3×8 + 3×4 = 36 chips" in line and "4×8 = 32 chips" in line for line in problems(values))
    values["models"][0]["groups"] = 2
    assert accepted(values)


def test_what_a_release_accepts_and_ignores_is_said():
    assert any("trafficPolicy" in note for note in kthena.notes("0.4", 2, "pd"))
    assert not any("trafficPolicy" in note for note in kthena.notes("1.0", 2, "pd"))
    assert any("#1188" in note for note in kthena.notes("1.0", 1, "pd"))
