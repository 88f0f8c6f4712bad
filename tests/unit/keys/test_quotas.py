"""Quotas of a day: what may be declared, and the gate that the program begins."""

import json

import pytest

from components.api_keys import ApiKeysArgs
from components.scaling.monitoring import dashboard
from rules import channel_gate, names
from rules.channel_panels import Price
from settings.checks.keys import quotas_of_a_day_are_counted
from settings.errors import SettingsError
from tests.envoy.stacks import CLIENTS, OUTBOUND, stack
from tests.unit.keys.test_api_keys import CHANNEL, CLIENT, declared, fresh
from tests.unit.keys.test_key_agent_objects import rules
from tests.unit.pulumi_engine import plain
from tests.unit.test_gateway import context

PRICED = {
    "alias": "a", "modelName": "GLM-5", "weight": 1.0, "maxTokens": 10, "temperature": 0.5, "chipAffinity": ["ascend"],
    "pricePerMillionInput": 2, "pricePerMillionOutput": 8,
}  # fmt: skip
FREE = PRICED | {"pricePerMillionInput": 0, "pricePerMillionOutput": 0}


def models(entry: dict, **more) -> dict:
    return {"models": [entry], "fallback": {"order": []}, **more}


def refusal(**groups) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        stack(channel={}, **groups)
    return [problem.line() for problem in caught.value.problems]


def test_the_agent_and_the_dashboard_are_told_the_price_of_each_direction():
    settings = stack(channel={}, channelModels=models(PRICED))
    assert ApiKeysArgs.of(settings, ()).prices == (Price("GLM-5", 2, 8),)
    (shown,) = dashboard(settings, context())["data"].values()
    assert "* 2e-06" in shown and "* 8e-06" in shown


def test_money_needs_a_price_for_every_model_of_the_channel():
    keys = ({**CLIENTS[0], "spendPerDay": 1.5},)
    (line,) = refusal(keys=keys, channelModels=models(FREE))
    assert "keys.keys[0].spendPerDay" in line and "no price is declared for GLM-5" in line
    assert stack(channel={}, keys=keys, channelModels=models(PRICED)).keys.keys[0].spend_per_day == 1.5


@pytest.mark.parametrize("quota", [{"tokensPerDay": 5}, {"spendPerDay": 5}])
def test_a_quota_that_nobody_would_count_is_refused(quota):
    keys = (CLIENTS[0], {**OUTBOUND, "id": "coding", **quota})
    unseen = models(PRICED, observability={"recordTokenUsage": False})
    (line,) = refusal(keys=keys, channelModels=unseen)
    assert "set channelModels.observability.recordTokenUsage to true" in line
    counted = stack(channel={}, keys=keys, channelModels=models(PRICED))
    alone = counted.model_copy(update={"keys": counted.keys.model_copy(update={"agent": False})})
    assert quotas_of_a_day_are_counted(counted) == []
    assert [problem.fix for problem in quotas_of_a_day_are_counted(alone)] == ["set keys.agent to true"]


def test_the_program_begins_an_open_gate_and_nothing_in_it_is_secret():
    one = declared((CLIENT, fresh(), "current"), (CHANNEL, fresh(), "current"))[names.CHANNEL_GATE]
    (resource,) = json.loads(plain(one.inputs["data"])[channel_gate.FILE])["resources"]
    assert (resource["name"], resource["typed_config"]["rules"]["policies"]) == (channel_gate.FILTER, {})


def test_the_agent_may_write_the_gate_and_not_read_it():
    about = [rule["verbs"] for rule in rules() if rule.get("resourceNames") == [names.CHANNEL_GATE]]
    assert about == [["patch"]]
