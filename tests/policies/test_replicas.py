"""Who writes spec.replicas."""

from policies.checks import replicas
from policies.objects import Object
from policies.unknown import UNKNOWN
from tests.policies.builders import deployment, found, thing

WITHOUT_REPLICAS, ONE_SCALER = replicas.RULES


def scaler(name="hpa", kind="HorizontalPodAutoscaler", target: object = "app"):
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}
    return thing(kind, name, api="autoscaling/v2", spec={"scaleTargetRef": reference})


def test_replicas_beside_a_scaler_are_refused():
    (violation,) = found(WITHOUT_REPLICAS, scaler(), deployment(replicas=3))
    assert violation.object == "Deployment llm/app"
    assert violation.path == "spec.replicas"
    assert "HorizontalPodAutoscaler llm/hpa" in violation.message


def test_replicas_without_a_scaler_or_no_replicas_beside_one_are_fine():
    assert not found(WITHOUT_REPLICAS, deployment(replicas=3))
    assert not found(WITHOUT_REPLICAS, scaler(), deployment())
    assert not found(WITHOUT_REPLICAS, scaler(target="other"), deployment(replicas=3))


def test_ignored_replicas_are_the_scalers():
    ignored = Object(deployment(replicas=3), ignored=("spec.replicas",))
    assert not found(WITHOUT_REPLICAS, scaler(), ignored)


def test_an_unknown_target_is_noted_and_does_not_hide_the_next_scalers():
    violations = found(WITHOUT_REPLICAS, scaler("first", target=UNKNOWN), scaler("second"), deployment(replicas=3))
    assert [(v.enforcement, v.object) for v in violations] == [
        ("mandatory", "Deployment llm/app"),
        ("advisory", "HorizontalPodAutoscaler llm/first"),
    ]


def test_two_scalers_on_one_target_are_refused():
    (violation,) = found(ONE_SCALER, scaler("one"), scaler("two", kind="ScaledObject"))
    assert violation.object == "ScaledObject llm/two"
    assert not found(ONE_SCALER, scaler("one"), scaler("two", target="other"))
