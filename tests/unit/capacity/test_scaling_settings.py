"""Settings of the scalers: what is refused, and what a stack may come to hold and cost."""

from typing import Any

import pytest

from capacity.config import ControllerConfig
from settings.capacity_plan import costs
from settings.errors import SettingsError
from settings.settings import Settings
from tests.unit.test_settings import dev, lines


def scaled(**engines: Any) -> dict[str, Any]:
    values = dev()
    values["nodePools"][0] |= {"nodes": [], "mode": "existing", "count": 100, "chipsPerNode": 8}
    values["autoscaling"]["engines"] = {"enabled": True, **engines}
    return values


def test_a_minimum_above_the_maximum_is_refused():
    assert any("minReplicas 5 is above maxReplicas 4" in line for line in lines(scaled(minReplicas=5, maxReplicas=4)))


def test_a_role_may_have_its_own_bounds():
    settings = Settings.from_mapping(scaled(roles={"decode": {"minReplicas": 1, "maxReplicas": 3}}))
    assert settings.autoscaling.engines.bounds("decode") == (1, 3)
    assert settings.autoscaling.engines.bounds("prefill") == (2, 10)


def test_maximum_replicas_warm_pods_and_surge_must_fit_the_pool():
    values = scaled(maxReplicas=10)
    values["nodePools"][0]["count"] = 15
    values["warmPool"] = {"enabled": True, "roles": ["decode"], "maxReplicas": 2}
    # 10×8 + 1×8 + 10×4 + 2×4 + 2×4 = 144 chips on 120
    assert any("144 chips" in line and "120 chips" in line for line in lines(values))
    values["nodePools"][0]["count"] = 18
    Settings.from_mapping(values)


def test_a_budget_of_warm_chips_counts_in_place_of_the_maxima():
    values = scaled(maxReplicas=10)
    values["warmPool"] = {"enabled": True, "roles": ["decode", "prefill"], "replicas": 1, "maxReplicas": 4}
    values["nodePools"][0]["count"] = 21
    # 10×8 + 4×8 + 2×8 + 10×4 + 4×4 + 2×4 = 192 chips on 168
    assert any("192 chips" in line for line in lines(values))
    values["warmPool"]["chipsPerPool"] = 24
    # the warm pods' 48 become 24: two of 8 (one is everybody's minimum, 12 in all) and two of 4
    Settings.from_mapping(values)
    values["nodePools"][0]["count"] = 20
    assert any("168 chips" in line and "160 chips" in line for line in lines(values))


def test_warm_pods_that_start_over_their_budget_are_refused_with_the_numbers():
    values = scaled(maxReplicas=2)
    values["warmPool"] = {"enabled": True, "roles": ["decode", "prefill"], "replicas": 2, "chipsPerPool": 23}
    assert any("warmPool.chipsPerPool: 23" in line and "= 24 chips" in line for line in lines(values))
    values["warmPool"]["chipsPerPool"] = 24
    Settings.from_mapping(values)


def test_the_controller_is_told_of_the_budget_and_of_each_targets_chips():
    values = scaled(maxReplicas=2)
    values["warmPool"] = {"enabled": True, "roles": ["decode", "prefill"], "chipsPerPool": 24}
    config = ControllerConfig.from_settings(Settings.from_mapping(values))
    assert config.warm_chips == 24
    pool = values["nodePools"][0]["name"]
    assert {(t.role, t.pool, t.chips) for t in config.targets if t.model} == {("prefill", pool, 8), ("decode", pool, 4)}


def test_a_trigger_of_ones_own_is_linted():
    trigger = {"name": "kv", "query": "avg(vllm:kv_cache_usage_perc)", "target": 70}
    keda = {"implementation": "keda", "prometheusUrl": "http://prometheus.monitoring:9090"}
    assert any("0 to 1, not percent" in line for line in lines(scaled(**keda, triggers=[trigger])))
    Settings.from_mapping(scaled(**keda, triggers=[trigger | {"target": 0.7}]))
    assert any("only implementation keda" in line for line in lines(scaled(triggers=[trigger | {"target": 0.7}])))


def test_keda_without_a_prometheus_is_refused():
    assert any("prometheusUrl" in line for line in lines(scaled(implementation="keda")))


def test_kthenas_scaler_is_for_kthenas_workloads():
    assert any("backend kthena only" in line for line in lines(scaled(implementation="kthena")))


@pytest.mark.parametrize(
    ("window", "said"),
    [
        ({"timezone": "Mars/Phobos"}, "is no time zone"),
        ({"start": "09:00", "end": "09:00"}, "the window is empty"),
        ({"minReplicas": 11}, "the role's maximum is 10"),
        ({"model": "other"}, "is not a declared model"),
    ],
)
def test_an_impossible_window_is_refused(window: dict[str, Any], said: str):
    sound = {"role": "decode", "start": "08:00", "end": "18:00", "minReplicas": 4}
    Settings.from_mapping(scaled(schedule=[sound]))
    assert any(said in line for line in lines(scaled(schedule=[sound | window])))


def test_two_ratios_that_chase_each_other_are_refused():
    Settings.from_mapping(scaled(decodePerPrefill=0.5, prefillPerDecode=2))
    assert any(
        "each role would chase the other" in line for line in lines(scaled(decodePerPrefill=1, prefillPerDecode=2))
    )


def test_a_second_stack_of_a_cluster_cannot_serve_the_metrics_too():
    values: dict[str, Any] = {**scaled(), "clusterScope": "use"}
    assert any("clusterScope own" in line for line in lines(values))
    values["autoscaling"]["engines"]["metricsSource"] = "prometheus-adapter"
    Settings.from_mapping(values)


def test_the_gateways_thresholds_leave_room_between_them():
    values = dev()
    values["autoscaling"]["gateway"] = {"scaleInThreshold": 0.8}
    assert any("else pods flap" in line for line in lines(values))


def test_the_warm_pool_starts_within_its_bounds():
    assert any("must lie between" in line for line in lines(dev() | {"warmPool": {"replicas": 9}}))


def test_costs_are_shown_at_minimum_maximum_and_for_the_warm_pool():
    values = scaled()
    values["nodePools"][0]["costPerChipHour"] = 25
    values["warmPool"] = {"enabled": True, "roles": ["decode"], "replicas": 2, "maxReplicas": 2}
    values["models"][0]["decode"]["chips"] = 1
    assert costs(Settings.from_mapping(values)) == {
        "minimum": 2 * 8 * 25 + 2 * 25,
        "declared": 2 * 8 * 25 + 25,
        "maximum": 10 * 8 * 25 + 10 * 25,
        "warmPool": 50,
        "warmPoolPerMonth": 36_000,
    }


def test_without_scalers_the_declared_replicas_are_all():
    assert (plan := costs(Settings.from_mapping(dev())))["minimum"] == plan["maximum"] == plan["declared"]


def test_problems_are_worded_with_the_key():
    with pytest.raises(SettingsError, match=r"moonstack:autoscaling\.engines\.implementation"):
        Settings.from_mapping(scaled(implementation="kthena"))
