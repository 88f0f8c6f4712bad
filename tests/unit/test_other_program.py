"""The components as a library: the example program runs as a whole, with its own project and configuration."""

import json
import runpy
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml
from pulumi.runtime import config as runtime_config

from tests.unit.pulumi_engine import Registered, holds_secret, run

FOLDER = Path(__file__).parents[2] / "examples" / "other-program"
KEY = "chat-platform:clientKey"


@pytest.fixture
def serving() -> Iterator[dict[str, Any]]:
    """The example's settings, which a test may change before it runs the program."""
    values = yaml.safe_load((FOLDER / "Pulumi.dev.yaml").read_text())["config"]["chat-platform:serving"]
    yield values
    runtime_config.CONFIG.set({})


def declared(serving: dict[str, Any]) -> list[Registered]:
    config = {"chat-platform:serving": json.dumps(serving), KEY: "sk-" + secrets.token_hex(24)}
    pulumi.runtime.set_all_config(config, [KEY])
    return run(lambda: runpy.run_path(str(FOLDER / "__main__.py")), project="chat-platform", stack="dev")


def objects(found: list[Registered], kind: str) -> dict[str, dict[str, Any]]:
    return {one.name: one.inputs for one in found if one.type.rpartition(":")[2] == kind}


def test_another_program_declares_keys_store_model_gateway_and_its_own_object(serving: dict[str, Any]):
    found = declared(serving)
    assert set(objects(found, "Deployment")) == {
        "mooncake-master",
        "assistant-prefill-gpu",
        "assistant-decode-gpu",
        "assistant-router",
        "gateway",
    }
    assert objects(found, "ConfigMap")["application"]["data"] == {
        "OPENAI_BASE_URL": "http://gateway.chat.svc.cluster.local:9090/v1"
    }
    namespaces = {one.inputs["metadata"].get("namespace") for one in found if "metadata" in one.inputs}
    assert namespaces == {"chat", None}


def test_its_key_is_secret_wherever_it_goes(serving: dict[str, Any]):
    found = declared(serving)
    value = runtime_config.CONFIG.get()[KEY]
    assert any(holds_secret(one.inputs) for one in found if one.type.endswith(":Secret"))
    assert all(value not in json.dumps(one.inputs) for one in found if not one.type.endswith(":Secret"))


def test_its_settings_are_checked_under_their_own_name(serving: dict[str, Any]):
    serving["models"][0]["decode"]["pool"] = "nowhere"
    with pytest.raises(pulumi.RunError, match=r"problem\(s\) in chat-platform:serving:\n.*nowhere"):
        declared(serving)
