"""The stack configuration: what it accepts, and how it says no."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from rules import timing
from settings.errors import SettingsError
from settings.settings import Settings

ROOT = Path(__file__).parents[2]


def dev() -> dict[str, Any]:
    config = yaml.safe_load((ROOT / "Pulumi.dev.yaml").read_text())["config"]
    return {key.removeprefix("moonstack:"): value for key, value in config.items()}


def lines(values: dict[str, Any]) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        Settings.from_mapping(values)
    return [problem.line() for problem in caught.value.problems]


def test_the_dev_stack_is_valid():
    settings = Settings.from_mapping(dev())
    assert settings.models[0].prefill[0].replicas == 2
    assert settings.models[0].decode[0].replicas == 1


def test_a_misspelt_key_is_answered_with_the_key_that_was_meant():
    values = dev()
    values["models"][0]["prefil"] = values["models"][0].pop("prefill")
    assert any("moonstack:models[0].prefil" in line and "did you mean prefill?" in line for line in lines(values))


def test_an_unknown_group_is_refused_with_the_known_ones():
    assert any("moonstack:modells" in line and "models" in line for line in lines(dev() | {"modells": []}))


def test_every_broken_group_is_reported_in_one_go():
    values = dev()
    values["environment"] = "staging"
    values["gateway"]["replicas"] = 0
    del values["cluster"]["identifier"]
    found = lines(values)
    assert len(found) == 3
    assert any("moonstack:environment: 'staging': must be one of" in line for line in found)
    assert any("moonstack:gateway.replicas: 0: must be at least 1" in line for line in found)
    assert any("moonstack:cluster.identifier" in line and "is required" in line for line in found)


def test_more_chips_than_the_pool_has_are_refused_with_the_sum():
    values = dev()
    values["models"][0]["prefill"]["replicas"] = 4
    assert any(
        "4×8 + 1×4 = 36 chips: pool ascend has 1×32 = 32 chips" in line.replace("'", "") for line in lines(values)
    )


def test_two_models_of_one_name_are_refused():
    values = dev()
    values["models"] *= 2
    assert any("models[1].name" in line and "exists already" in line for line in lines(values))


def test_the_channel_quota_covers_the_largest_gateway():
    values = dev()
    values["channel"] = {"key": "out", "quotaQps": 15_360}
    values["keys"]["keys"].append({"id": "out", "purpose": "fallback", "owner": "gateway"})
    values["autoscaling"]["gateway"] = {"maxReplicas": 128}
    Settings.from_mapping(values)
    values["autoscaling"]["gateway"] = {"maxReplicas": 129}
    assert any("129 × qpsPerPod 120 = 15,480" in line for line in lines(values))


def test_a_missing_stack_file_names_those_that_exist():
    with pytest.raises(SettingsError, match=r"Pulumi\.dev\.yaml"):
        Settings.from_stack_file(ROOT / "Pulumi.nowhere.yaml")


def test_a_stack_file_that_is_no_yaml_is_one_clear_problem(tmp_path: Path):
    broken = tmp_path / "Pulumi.x.yaml"
    broken.write_text("config: [")
    with pytest.raises(SettingsError, match="cannot be read"):
        Settings.from_stack_file(broken)


@pytest.mark.parametrize("text", ["config: " + "[" * 3000, "config: {x: " + "9" * 5000 + "}"])
def test_nesting_and_numbers_beyond_what_the_parser_takes_are_one_clear_problem(tmp_path: Path, text: str):
    path = tmp_path / "Pulumi.x.yaml"
    path.write_text(text)
    with pytest.raises(SettingsError, match="cannot be read"):
        Settings.from_stack_file(path)


def test_a_value_that_aliases_multiply_is_refused_without_being_written_out(tmp_path: Path):
    layers = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 12)]
    path = tmp_path / "Pulumi.x.yaml"
    path.write_text("\n".join(["l0: &l0 [x]", *layers, "config: {'moonstack:environment': *l11}"]))
    with pytest.raises(SettingsError, match="environment: 'list of 9': must be one of"):
        Settings.from_stack_file(path)


def test_a_number_or_text_too_long_for_a_line_is_abbreviated():
    values: dict[str, Any] = dev() | {"environment": "x" * 10_000}
    values["nodePools"][0]["chipsPerNode"] = 1 << 20_000
    found = lines(values)
    assert any("a number of 20001 bits" in line for line in found)
    assert all(len(line) < 400 for line in found)


@pytest.mark.parametrize("twice", ["moonstack:kvStore: {}", "moonstack:smoke: {via: endpoint, via: port-forward}"])
def test_a_key_written_twice_is_refused_where_it_stands(tmp_path: Path, twice: str):
    path = tmp_path / "Pulumi.x.yaml"
    path.write_text((ROOT / "Pulumi.dev.yaml").read_text() + f"  {twice}\n")
    with pytest.raises(SettingsError, match=r"cannot be read: the key \S+ is written twice.*line \d+"):
        Settings.from_stack_file(path)


def test_a_merged_key_may_be_set_again(tmp_path: Path):
    path = tmp_path / "Pulumi.x.yaml"
    text = (ROOT / "Pulumi.dev.yaml").read_text()
    text = text.replace("kvStore: {", "kvStore: {<<: *merged, ")
    path.write_text("base: &base {segment: 1Gi}\ndeep: {deeper: &merged {<<: *base, segment: 2Gi}}\n" + text)
    assert Settings.from_stack_file(path).kv_store.segment == "256Mi"


def test_digits_of_other_scripts_are_no_quantity():
    values = dev()
    values["models"][0]["prefill"]["memory"] = "٣Gi"
    assert any("prefill[0].memory: '٣Gi': must match" in line for line in lines(values))


def test_key_values_never_enter_the_settings():
    values = dev() | {"keyValue-dev-client": {"secure": "v1:abc"}}
    assert "keyValue" not in Settings.from_mapping(values).model_dump_json()


def test_a_block_size_that_the_cpu_kernel_refuses_is_refused_before_the_engine_does():
    values = dev()
    values["models"][0]["engine"]["blockSize"] = 16
    assert any(
        "engine.blockSize: 16: CPU (development) takes multiples of 32; use 32" in line for line in lines(values)
    )


@pytest.mark.parametrize(
    ("group", "key", "most"),
    [
        ("gateway", "maxConcurrentStreams", 1_000_000),
        ("gateway", "clientIdleSeconds", 86_400),
        ("gateway", "limits.connections", 1_000_000),
        ("gateway", "limits.addressQps", 1_000_000),
        ("models.0", "engine.maxModelLen", 10_000_000),
        ("models.0", "engine.maxNumSeqs", 65_536),
        ("keys.keys.0", "qps", 1_000_000),
    ],
)
def test_a_number_is_accepted_up_to_its_bound_and_refused_above_it(group: str, key: str, most: int):
    values = dev()
    parent: Any = values
    *folders, name = f"{group}.{key}".split(".")
    for folder in folders:
        parent = parent[int(folder)] if isinstance(parent, list) else parent.setdefault(folder, {})
    parent[name] = most
    Settings.from_mapping(values)
    for above in (most + 1, 10**30):
        parent[name] = above
        assert any(f"{name}: " in line and f"must be at most {most}; lower it" in line for line in lines(values))


QUANTITIES = (
    "nodePools.0.cpu", "nodePools.0.memory", "models.0.weights.size", "models.0.weights.loadBandwidth",
    "models.0.weights.downloadBandwidth", "models.0.prefill.cpu", "models.0.prefill.memory", "models.0.decode.memoryLimit",
    "models.0.weights.cache.limit", "kvStore.segment", "kvStore.buffer", "kvStore.storePods.segment", "kvStore.storePods.memory",
    "kvStore.storePods.cpu", "gateway.cpu", "gateway.memory",
)  # fmt: skip


@pytest.mark.parametrize("path", QUANTITIES)
@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("0", "must be at least 1M?[mi]; raise it"),
        ("0.0001m", "must be at least 1M?[mi]; raise it"),
        ("99999999999999999999Ti", "must be at most (10000|1Pi); lower it"),
        ("9" * 33, "must have at most 32 characters"),
    ],
)
def test_a_quantity_of_nothing_and_one_beyond_every_machine_are_refused(path: str, value: str, said: str):
    values = dev()
    parent: Any = values
    *folders, name = path.split(".")
    for folder in folders:
        parent = parent[int(folder)] if isinstance(parent, list) else parent.setdefault(folder, {})
    parent[name] = value
    assert any(f".{name}: " in line and re.search(said, line) for line in lines(values))


def test_no_quantity_is_missing_here():
    schema = Settings.model_json_schema()["$defs"]
    names = {
        key
        for definition in schema.values()
        for key, field in definition["properties"].items()
        for each in (field, *field.get("anyOf", ()))
        if each.get("format") in ("CPU", "bytes")
    }
    assert names == {path.rpartition(".")[2] for path in QUANTITIES}


def test_bytes_in_thousandths_are_refused():
    values = dev()
    values["kvStore"]["storePods"] = {"segment": "1m"}
    assert any("kvStore.storePods.segment: '1m': must be at least 1Mi" in line for line in lines(values))


def test_a_memory_limit_below_what_the_pod_reserves_is_refused():
    values = dev()
    values["models"][0]["decode"] |= {"memory": "3Gi", "memoryLimit": "3071Mi"}
    assert any("decode" in line and "memoryLimit 3071Mi is below memory 3Gi" in line for line in lines(values))
    values["models"][0]["decode"]["memoryLimit"] = "3072Mi"
    Settings.from_mapping(values)


def test_a_cache_that_the_model_alone_overflows_is_refused():
    values = dev()
    values["models"][0]["weights"] = {
        "source": "hub", "location": "a/b", "revision": "a" * 40, "size": "4Gi", "cache": {"limit": "4095Mi"}
    }  # fmt: skip
    assert any("weights" in line and "cache.limit 4095Mi is below size 4Gi" in line for line in lines(values))
    values["models"][0]["weights"]["cache"]["limit"] = "4Gi"
    Settings.from_mapping(values)


def test_budgets_of_the_largest_rollout_stay_within_what_kubernetes_counts():
    assert timing.startup_failure_threshold(10**12) == timing.LONGEST
    assert timing.rollout_seconds(10**9, 86_400, 10_000) == timing.LONGEST
    assert timing.rollout_seconds(0, 60, 1) < 1000
