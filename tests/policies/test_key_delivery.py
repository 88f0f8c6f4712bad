"""How keys reach containers."""

from policies.checks import key_delivery
from policies.unknown import UNKNOWN
from tests.policies.builders import container, deployment, found, pod_spec

BY_REFERENCE, AS_DIRECTORY = key_delivery.RULES


def variable(**how):
    return deployment(pod_spec(container(env=[{"name": "TAOTOKEN_API_KEY", **how}])))


def test_a_literal_in_a_variable_named_like_a_key_is_refused():
    (violation,) = found(BY_REFERENCE, variable(value="anything"))
    assert violation.path == "spec.template.spec.containers[0].env[0].value"
    assert "secretKeyRef" in violation.message
    assert "anything" not in violation.message


def test_a_config_map_is_no_place_for_a_key():
    assert found(BY_REFERENCE, variable(valueFrom={"configMapKeyRef": {"name": "c", "key": "k"}}))


def test_a_reference_to_a_secret_is_right():
    assert not found(BY_REFERENCE, variable(valueFrom={"secretKeyRef": {"name": "s", "key": "k"}}))


def test_an_unknown_value_is_noted():
    (violation,) = found(BY_REFERENCE, variable(value=UNKNOWN))
    assert violation.enforcement == "advisory"


def test_an_unknown_value_does_not_hide_the_next_variable():
    env = [{"name": "A_TOKEN", "value": UNKNOWN}, {"name": "B_TOKEN", "value": "x"}]
    violations = found(BY_REFERENCE, deployment(pod_spec(container(env=env))))
    assert [violation.enforcement for violation in violations] == ["mandatory", "advisory"]


def mounted(volume, **mount):
    mounts = [{"name": "keys", "mountPath": "/etc/keys", **mount}]
    return deployment(pod_spec(container(volumeMounts=mounts), volumes=[{"name": "keys", **volume}]))


def test_a_secret_mounted_by_sub_path_is_refused_also_when_projected():
    secret = {"secret": {"secretName": "s"}}
    projected = {"projected": {"sources": [{"secret": {"name": "s"}}]}}
    for volume in (secret, projected):
        assert found(AS_DIRECTORY, mounted(volume, subPath="k"))
        assert not found(AS_DIRECTORY, mounted(volume))


def test_a_sub_path_of_another_volume_is_fine():
    assert not found(AS_DIRECTORY, mounted({"emptyDir": {}}, subPath="k"))
