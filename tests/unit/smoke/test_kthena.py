"""Models of backend kthena: what its controller says is believed, and what it does not say is noticed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from settings.settings import Settings
from smoke import kthena
from smoke.doctor.diagnosis import findings
from smoke.doctor.facts import Facts
from smoke.doctor.kthena import CATALOGUE
from smoke.engines import Engines
from smoke.probe import LiveStack
from smoke.probes import inside
from smoke.runner import run_probes
from tests.unit.serving.stacks import stack

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
CONDITIONS = {"ModelServing": "Available", "AutoscalingPolicy": "Ready"}


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smoke.runner.PAUSES", (0.0, 0.0))


def settings(release: str = "1.0", scaled: bool = True) -> Settings:
    """`big` on Kthena and `small` natively."""
    values = stack()
    values["kthena"] = {"release": release}
    values["autoscaling"] = {"engines": {"enabled": scaled, "maxReplicas": 2}}
    return Settings.from_mapping(values)


def thing(kind: str, name: str = "big", status: str | None = "True", age: float = 3600, now: datetime = NOW) -> Any:
    state = [{"type": CONDITIONS[kind], "status": status, "message": "no pods yet"}] if status else []
    made = (now - timedelta(seconds=age)).isoformat()
    return {"kind": kind, "metadata": {"name": name, "creationTimestamp": made}, "status": {"conditions": state}}


def said(release: str, *things: Any) -> dict[str, str]:
    facts = Facts(settings=settings(release), now=NOW, kthena=things)
    return {f"{one.id} {one.object}": one.cause for one in findings(CATALOGUE, facts)}


def test_a_model_that_is_served_and_scaled_is_not_named():
    assert said("1.0", thing("ModelServing"), thing("AutoscalingPolicy")) == {}


def test_engines_that_are_not_available_are_named_with_what_kthena_says():
    found = said("1.0", thing("ModelServing", status="False"), thing("AutoscalingPolicy"))
    assert found.keys() == {"kthena-not-served modelserving/big"}
    assert "Available is False: no pods yet" in found["kthena-not-served modelserving/big"]


@pytest.mark.parametrize(("age", "named"), [(10, False), (61, True)])
def test_a_controller_that_says_nothing_is_noticed_once_it_had_its_time(age: float, named: bool):
    found = said("1.0", thing("ModelServing", status=None, age=age), thing("AutoscalingPolicy", status=None, age=age))
    assert found.keys() == (
        {"kthena-not-served modelserving/big", "kthena-not-scaled autoscalingpolicy/big"} if named else set()
    )


def test_what_is_declared_and_not_there_is_named():
    assert said("1.0").keys() == {"kthena-not-served modelserving/big", "kthena-not-scaled autoscalingpolicy/big"}


def test_0_4_has_a_binding_for_each_role_and_no_status_to_read():
    bindings = [
        {"kind": "AutoscalingPolicyBinding", "metadata": {"name": f"big-{role}"}} for role in ("prefill", "decode")
    ]
    assert said("0.4", thing("ModelServing"), *bindings) == {}
    found = said("0.4", thing("ModelServing"), bindings[0])
    assert found.keys() == {"kthena-not-scaled autoscalingpolicybinding/big-decode"}


def test_what_could_not_be_read_is_not_called_missing():
    facts = Facts(settings=settings(), now=NOW, blind=("Kthena's objects",))
    assert findings(CATALOGUE, facts) == []


def test_a_stack_without_kthena_is_not_asked_for_it():
    both = settings()
    native = both.model_copy(update={"models": both.models[1:]})
    assert (kthena.served(native), kthena.scalers(native)) == ([], ("AutoscalingPolicy", []))


class Served:
    """A cluster with HPAs for native models and policies for those of Kthena."""

    namespace = "serving"

    def __init__(self, hpas: list[Any], policies: list[Any]) -> None:
        self.lists = {"horizontalpodautoscalers": hpas, "autoscalingpolicies": policies}

    def path(self, resource: str, name: str = "", group: str = "") -> str:
        return resource

    async def items(self, path: str, selector: Any = None) -> list[Any]:
        return self.lists[path]


HPA = {"metadata": {"name": "small"}, "status": {"conditions": [{"type": "ScalingActive", "status": "True"}]}}


@pytest.mark.parametrize(
    ("hpas", "status", "cause"),
    [
        ([HPA], "True", None),
        ([HPA], "False", "autoscalingpolicy/big is not active: Ready is False"),
        ([HPA], "absent", "autoscalingpolicy/big is not active: it is declared and not there"),
        ([], "True", "there is no scaler"),
    ],
)
async def test_scalers_of_both_backends_are_probed(live: LiveStack, hpas: list[Any], status: str, cause: str | None):
    policies = [] if status == "absent" else [thing("AutoscalingPolicy", status=status)]
    result = await probed(live, settings(), Served(hpas, policies))
    assert result.verdict == ("fail" if cause else "pass")
    assert (cause or "") in (result.cause or "")


async def test_a_stack_that_only_kthena_scales_needs_no_hpa(live: LiveStack):
    both = settings()
    alone = both.model_copy(update={"models": both.models[:1]})
    assert [one.name for one in inside.probes(alone)] == ["scalers"]
    result = await probed(live, alone, Served([], [thing("AutoscalingPolicy")]))
    assert (result.verdict, result.figure) == ("pass", 1)


async def probed(live: LiveStack, declared: Settings, cluster: Served) -> Any:
    stack = replace(live, settings=declared, engines=Engines(cluster))  # type: ignore[arg-type]
    probe = next(one for one in inside.probes(declared) if one.name == "scalers")
    results, _ = await run_probes([probe], stack, 20)
    return results[0]
