"""The gate: proof before the digest is stored, and a failure that tells how to go back."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pulumi
import pytest

from components.context import Context
from components.smoke_gate import SmokeGate, SmokeGateArgs
from settings.errors import SettingsError
from settings.settings import Settings


@dataclass(frozen=True)
class FakeProof:
    passed: bool
    text: str


class Prover:
    def __init__(self, passed: bool) -> None:
        self.passed = passed
        self.releases: list[str] = []

    async def __call__(self, release: str) -> FakeProof:
        self.releases.append(release)
        return FakeProof(self.passed, "roll back:  git checkout abc")


HOOK_ARGS = pulumi.ResourceHookArgs(urn="u", id="i", name="n", type="t")


def declare(declare_stack: Callable[..., Any], prover: Prover, **more: Any) -> tuple[SmokeGate, dict[str, Any]]:
    made: list[SmokeGate] = []

    def program(context: Context) -> None:
        args = SmokeGateArgs(release=pulumi.Output.from_input("d1g35t"), prove=prover, **more)
        made.append(SmokeGate("smoke-gate", args, context))

    recorder = declare_stack(program)
    return made[0], recorder.created("Stash")["smoke-gate"]


def test_the_stash_holds_the_release_digest(declare_stack: Callable[..., Any]):
    _, stash = declare(declare_stack, Prover(True))
    assert stash["input"] == {"release": "d1g35t", "nonce": "", "proof": "smoke"}


def test_a_skipped_proof_is_stored_as_skipped_so_that_the_next_run_proves(declare_stack: Callable[..., Any]):
    _, stash = declare(declare_stack, Prover(True), skip=True)
    assert stash["input"]["proof"] == "skipped"


def test_a_nonce_changes_what_is_stored(declare_stack: Callable[..., Any]):
    _, stash = declare(declare_stack, Prover(True), nonce="again")
    assert stash["input"]["nonce"] == "again"


def test_a_failed_proof_fails_the_hook_with_its_text(declare_stack: Callable[..., Any]):
    import asyncio

    prover = Prover(False)
    gate, _ = declare(declare_stack, prover)
    with pytest.raises(pulumi.RunError, match="git checkout abc"):
        asyncio.get_event_loop().run_until_complete(gate.prove(HOOK_ARGS))
    assert prover.releases == ["d1g35t"]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"smokeSkip": True}, "moonstack:smokeSkip"),
        ({"smoke": {"gate": False}}, "moonstack:smoke.gate"),
        ({"network": {"enforced": False}}, "moonstack:network.enforced"),
    ],
)
def test_prod_can_not_do_without_the_proof(dev_values: dict[str, Any], change: dict[str, Any], path: str):
    values = {**dev_values, **change, "environment": "prod"}
    with pytest.raises(SettingsError) as caught:
        Settings.from_mapping(values)
    assert path in [problem.path for problem in caught.value.problems]


def test_the_way_endpoint_needs_an_endpoint(dev_values: dict[str, Any]):
    with pytest.raises(SettingsError) as caught:
        Settings.from_mapping(dev_values | {"smoke": {"via": "endpoint"}})
    assert [problem.path for problem in caught.value.problems] == ["moonstack:smoke.endpoint"]
    Settings.from_mapping(dev_values | {"smoke": {"via": "port-forward"}})
