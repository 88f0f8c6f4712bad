"""Every probe and every diagnosis is red on the fault it is for: the test that makes the fault, or why it isn't made for real."""

import ast
from functools import cache
from pathlib import Path

import pytest

from settings.channel import DEFAULT_MODELS
from settings.settings import Settings
from smoke.doctor.catalogue import CATALOGUE
from smoke.suite import probes_of

ROOT = Path(__file__).parents[3]
FAULTS = "tests/real/test_doctor_faults.py::test_the_fault_is_found_on_the_real_cluster"
PARTS, DOOR, ELASTIC = (
    "tests/real/test_doctor_parts.py::",
    "tests/envoy/test_doctor.py::",
    "tests/real/test_elasticity.py::",
)
CHANNEL, KTHENA = f"{DOOR}test_what_the_channel_answers_is_named", "tests/real/test_doctor_kthena.py::"
DIAGNOSES = {
    "gateway-unreachable": f"{DOOR}test_a_gateway_that_is_gone_is_named",
    "model-unavailable": f"{DOOR}test_routers_without_an_engine_are_named_and_sound_ones_are_not",
    "key-refused": f"{DOOR}test_a_key_that_the_gateway_does_not_know_is_named",
    "key-expired": f"{DOOR}test_a_key_is_named_before_its_end_and_after_it_when_the_gateway_refuses_it",
    "key-expires-soon": f"{DOOR}test_a_key_is_named_before_its_end_and_after_it_when_the_gateway_refuses_it",
    "answer-unparsable": f"{DOOR}test_an_answer_that_is_none_is_named",
    "model-names-differ": f"{DOOR}test_a_name_that_the_gateway_does_not_list_is_named",
    "channel-unreachable": f"{DOOR}test_a_channel_that_refuses_connections_is_named",
    "channel-key-refused": CHANNEL,
    "channel-model-unknown": CHANNEL,
    "channel-exhausted": CHANNEL,
    "channel-slow": f"{DOOR}test_a_channel_that_takes_most_of_the_time_is_named_and_one_that_is_only_there_is_not",
    "gateway-config-rejected": f"{DOOR}test_a_configuration_that_the_gateway_refuses_is_named",
    "gateway-retries-overflow": f"{DOOR}test_retries_that_a_budget_cuts_off_are_named",
    "metrics-api-missing": FAULTS,
    "metric-not-served": f"{ELASTIC}test_a_hanging_engine_and_a_lying_one_move_nothing",
    "two-scalers": FAULTS,
    "scaler-off": FAULTS,
    "scaler-at-maximum": f"{ELASTIC}test_a_scaler_that_may_not_have_what_it_wants_is_named_by_the_doctor",
    "ready-not-routed": FAULTS,
    "router-stale": FAULTS,
    "kthena-not-served": f"{KTHENA}test_a_kthena_without_its_controller_is_named_and_one_that_serves_is_not",
    "kthena-not-scaled": f"{KTHENA}test_a_kthena_without_its_controller_is_named_and_one_that_serves_is_not",
    "chips-insufficient": FAULTS,
    "no-node-fits": FAULTS,
    "mount-fails": FAULTS,
    "image-missing": FAULTS,
    "configuration-missing": FAULTS,
    "store-component-missing": FAULTS,
    "crash-loop": FAULTS,
    "not-ready": FAULTS,
    "out-of-memory": FAULTS,
    "rollout-stuck": FAULTS,
    "node-not-ready": f"{PARTS}test_a_node_whose_kubelet_is_silent_is_named",
    "store-master-down": FAULTS,
    "store-engines-missing": f"{PARTS}test_an_engine_that_the_master_does_not_know_is_named_until_it_is_restarted_as_the_fix_says",
    "store-silent": f"{PARTS}test_a_store_without_room_is_named_for_what_it_refuses_and_never_gives",
    "store-identities-differ": FAULTS,
    "hash-seed-differs": FAULTS,
    "load-failure-fatal": FAULTS,
    "store-puts-fail": f"{PARTS}test_a_store_without_room_is_named_for_what_it_refuses_and_never_gives",
    "grace-too-short": FAULTS,
    "root-ca-empty": f"{PARTS}test_an_empty_root_ca_is_named",
    "aggregated-api-down": f"{PARTS}test_an_aggregated_api_without_its_pods_is_named",
    "not-readable": f"{PARTS}test_what_a_reader_may_not_list_is_named_and_the_documented_rights_are_enough",
}  # fmt: skip
"""Diagnosis → the test that makes its fault of real parts."""

SAFE, MORE, ENVOY = (
    "tests/unit/smoke/test_safe_probes.py::", "tests/unit/smoke/test_more_probes.py::", "tests/envoy/test_smoke_probes.py::",
)  # fmt: skip
LOCK = f"{SAFE}test_a_door_without_a_lock_is_found"
INSIDE, CHANNEL_DOWN = (
    f"{MORE}test_each_fault_inside_is_named",
    f"{ENVOY}test_a_channel_that_is_down_is_seen_by_the_probes_that_need_it_alone",
)
PROBES = {
    "chat": f"{ENVOY}test_routers_that_are_down_are_seen_though_the_channel_bridges_them",
    "stream": f"{SAFE}test_a_fault_of_the_answer_is_named",
    "401:no-key": LOCK,
    "401:wrong-key": LOCK,
    "401:malformed-key": LOCK,
    "models": f"{ENVOY}test_a_gateway_that_was_not_updated_is_seen",
    "404:model": f"{SAFE}test_a_gateway_that_takes_any_model_is_found",
    "404:path": f"{SAFE}test_a_gateway_that_passes_any_path_on_is_found",
    "404:engine-paths": f"{SAFE}test_an_open_engine_path_is_found",
    "413": f"{SAFE}test_a_body_limit_that_is_not_in_force_is_found",
    "429": f"{MORE}test_a_quota_that_is_not_in_force_fails",
    "routers": INSIDE,
    "scalers": INSIDE,
    "scaler-metrics": INSIDE,
    "warm-pool": INSIDE,
    "golden-prompt": f"{SAFE}test_engines_with_other_weights_on_the_same_cache_are_found",
    "shared-prefix": f"{SAFE}test_decode_without_hits_fails_though_ttft_fell",
    "second-replica": f"{SAFE}test_a_replica_that_can_not_read_the_others_blocks_is_found",
    "fallback": CHANNEL_DOWN,
    "key-separation": f"{MORE}test_a_client_can_not_choose_its_target",
    "alias": CHANNEL_DOWN,
    "compare": f"{ENVOY}test_another_model_at_the_channel_is_seen_by_how_it_counts_the_same_prompt",
    "throughput": "tests/envoy/test_throughput_probe.py::test_throughput_is_red_where_every_prompt_is_computed_again",
    "boundary": "tests/real/test_network_boundary.py::test_smokes_probe_is_green_behind_the_policies_and_red_for_a_hole_to_one_part",
}
"""Probe, without the model or alias that it is for → the test in which it is red."""


@cache
def source(path: str) -> tuple[str, frozenset[str]]:
    text = (ROOT / path).read_text()
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return text, frozenset(one.name for one in ast.walk(ast.parse(text)) if isinstance(one, functions))


def probe_names() -> set[str]:
    """Of every probe that some stack calls for."""
    prod = Settings.from_stack_file(ROOT / "Pulumi.prod.yaml", as_deployed=True)
    dev = Settings.from_stack_file(ROOT / "Pulumi.dev.yaml", as_deployed=True)
    twin = DEFAULT_MODELS[0].model_copy(update={"in_cluster": prod.models[0].name})
    prod = prod.model_copy(update={"channel_models": prod.channel_models.model_copy(update={"models": (twin,)})})
    dev = dev.model_copy(update={"warm_pool": dev.warm_pool.model_copy(update={"enabled": True})})
    found = [probe.name for one in (dev, prod) for probe in probes_of(one, ("safe", "paid", "disruptive"))]
    known = {model.name for one in (dev, prod) for model in one.models} | {twin.alias}
    return {name.partition(":")[0] if name.partition(":")[2] in known else name for name in found}


def test_every_diagnosis_is_listed():
    assert set(DIAGNOSES) == {one.id for one in CATALOGUE}


def test_every_probe_is_listed():
    assert set(PROBES) == probe_names()


@pytest.mark.parametrize(("fault", "test"), DIAGNOSES.items())
def test_the_diagnosis_has_a_test_of_real_parts_that_asks_for_it(fault: str, test: str):
    path, _, function = test.partition("::")
    text, functions = source(path)
    assert path.startswith(("tests/real/", "tests/envoy/"))
    assert function in functions
    assert f'"{fault}"' in text


@pytest.mark.parametrize("test", sorted(set(PROBES.values())))
def test_the_probe_has_a_test_in_which_it_is_red(test: str):
    path, _, function = test.partition("::")
    assert function in source(path)[1]
