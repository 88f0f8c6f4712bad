"""The pack as the engine talks to it: the real process, by the engine's own protocol."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.empty_pb2 import Empty
from google.protobuf.struct_pb2 import Struct
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc

from local.dev import prepare_pack
from local.progress import Progress
from policies.catalogue import RULES
from tests.policies.builders import container, deployment, fake_key, pod_spec, thing

ROOT = Path(__file__).parents[2]
PACK = ROOT / "policies" / "pack"
PYTHON = PACK / ".venv" / "bin" / "python"
UNKNOWN_STRING = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""How the engine spells a string that is not known yet (pulumi sdk, plugin.UnknownStringValue)."""


class Pack:
    """The pack's process and its analyzer service."""

    def __init__(self) -> None:
        command = [str(PYTHON), "-u", "-m", "pulumi.policy", "127.0.0.1:1", str(PACK)]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        self._process = subprocess.Popen(command, env=environment, cwd=PACK, stdout=subprocess.PIPE)
        assert self._process.stdout
        self._channel = grpc.insecure_channel(f"127.0.0.1:{int(self._process.stdout.readline())}")
        self.service = analyzer_pb2_grpc.AnalyzerStub(self._channel)

    def judge(self, *objects: dict[str, Any]) -> list[Any]:
        """Diagnostics of each object alone and of all together, as a preview asks for them."""
        found = []
        for one in objects:
            found += self.service.Analyze(analyzer_pb2.AnalyzeRequest(**_resource(one))).diagnostics
        resources = [analyzer_pb2.AnalyzerResource(**_resource(one)) for one in objects]
        return [*found, *self.service.AnalyzeStack(analyzer_pb2.AnalyzeStackRequest(resources=resources)).diagnostics]

    def end(self) -> None:
        self._channel.close()
        self._process.kill()
        self._process.wait()


def _resource(one: dict[str, Any]) -> dict[str, Any]:
    kind, name = one["kind"], one["metadata"]["name"]
    group = "core" if one["apiVersion"] == "v1" else one["apiVersion"].partition("/")[0]
    token = f"kubernetes:{group}/{one['apiVersion'].rpartition('/')[2]}:{kind}"
    properties = Struct()
    properties.update(one)
    return {"type": token, "name": name, "urn": f"urn:pulumi:t::m::{token}::{name}", "properties": properties}


@pytest.fixture(scope="module")
def pack() -> Iterator[Pack]:
    prepare_pack(Progress())
    made = Pack()
    yield made
    made.end()


def test_the_pack_offers_one_policy_a_concern_and_scope_and_one_for_advice(pack):
    offered = {policy.name for policy in pack.service.GetAnalyzerInfo(Empty()).policies}
    expected = {rule.concern if rule.each else f"{rule.concern}-stack" for rule in RULES}
    assert offered == {*expected, "advice"}


def test_a_violation_is_mandatory_and_names_rule_and_path_but_no_value(pack):
    key = fake_key()
    (found,) = pack.judge(thing("ConfigMap", data={"x": key}))
    assert "no-key-text: ConfigMap llm/thing: data.x" in found.message
    assert found.enforcementLevel == analyzer_pb2.MANDATORY
    assert key not in found.message


def test_an_unknown_value_is_advice_and_hides_nothing_beside_it(pack):
    found = pack.judge(thing("ConfigMap", data={"a": UNKNOWN_STRING, "b": fake_key()}))
    assert {(one.policyName, one.enforcementLevel) for one in found} == {
        ("key-hygiene", analyzer_pb2.MANDATORY),
        ("advice", analyzer_pb2.ADVISORY),
    }
    assert not any("can't run policy" in one.message for one in found)


def test_nested_unknowns_leave_the_other_rules_running(pack):
    spec = pod_spec(container(image=UNKNOWN_STRING, env=[{"name": "API_KEY", "value": "literal"}]))
    found = {
        one.message.splitlines()[-1].partition(":")[0]
        for one in pack.judge(deployment(spec))
        if one.enforcementLevel == analyzer_pb2.MANDATORY
    }
    assert "key-by-reference" in found
    assert "pinned-images" not in found


def test_among_hundreds_of_objects_in_one_call_the_one_with_a_key_is_named(pack):
    """What a thousand cost is measured by `python -m bench preview`."""
    text = "name = 1\nother = 2\n" * 20
    objects = [thing("ConfigMap", f"c-{number}", data={"config.toml": text}) for number in range(200)]
    objects.insert(100, thing("ConfigMap", "odd", data={"config.toml": f"{text}{fake_key()}\n"}))
    (found,) = pack.judge(*objects)
    assert "ConfigMap llm/odd" in found.message
