"""Other ways to a key than writing it down: mounts, references, rights, and what a rule may overlook beside them."""

from typing import Any

import pytest
import yaml

from policies.catalogue import RULES
from policies.objects import Object
from policies.unknown import UNKNOWN
from rules import labels
from tests.policies.builders import container, deployment, found, pod_spec, thing
from tests.policies.saboteurs import CHAINS, SECRET, binding, change, envoy, ingress, relabel, role, route, service

BY_ID = {rule.id: rule for rule in RULES}
KEY = "key-app"


def app(name: str, **spec: Any) -> dict[str, Any]:
    one = deployment(pod_spec(**spec))
    one["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"] = name
    return one


def variable(name: str = "X") -> dict[str, Any]:
    return container(env=[{"name": name, "valueFrom": {"secretKeyRef": {"name": KEY, "key": "value"}}}])


WAYS: dict[str, dict[str, Any]] = {
    "a volume": {"volumes": [{"name": "v", "secret": {"secretName": KEY}}]},
    "a projected volume": {"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": KEY}}]}}]},
    "a driver's volume": {"volumes": [{"name": "v", "csi": {"driver": "d", "nodePublishSecretRef": {"name": KEY}}}]},
    "a file system's volume": {"volumes": [{"name": "v", "cephfs": {"secretRef": {"name": KEY}}}]},
    "a share": {"volumes": [{"name": "v", "azureFile": {"secretName": KEY, "shareName": "s"}}]},
    "an init container": {"initContainers": [variable()]},
    "a debugging container": {"ephemeralContainers": [variable()]},
    "a whole environment": {"initContainers": [container(envFrom=[{"secretRef": {"name": KEY}}])]},
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_secret_of_another_is_refused_on_every_way_into_a_pod(way):
    rule = BY_ID["secret-consumer"]
    assert found(rule, SECRET, app("router", **way))
    assert not found(rule, SECRET, app("gateway", **way))


def external(**metadata: Any) -> dict[str, Any]:
    """What the External Secrets operator makes the same Secret of."""
    target = {"name": KEY, "template": {"metadata": SECRET["metadata"]}}
    return thing(
        "ExternalSecret",
        "brings-it",
        api="external-secrets.io/v1",
        metadata={**SECRET["metadata"], "name": "brings-it", **metadata},
        spec={"target": target, "data": []},
    )


def test_a_secret_that_an_operator_brings_has_its_consumer_too():
    rule = BY_ID["secret-consumer"]
    assert found(rule, external(), app("router", **WAYS["a volume"]))
    assert not found(rule, external(), app("gateway", **WAYS["a volume"]))


@pytest.mark.parametrize(
    ("rule", "kind", "name", "value"),
    [
        ("key-metadata", "labels", labels.PURPOSE, "fun"),
        ("key-expiry", "annotations", labels.EXPIRES, "2020-01-01T00:00:00+00:00"),
    ],
)
def test_what_a_keys_secret_must_say_holds_for_one_that_an_operator_brings(rule, kind, name, value):
    assert found(BY_ID[rule], relabel(external(), kind, name, value))
    assert not found(BY_ID[rule], external())


READS = {"resources": ["secrets"], "verbs": ["get"], "resourceNames": [KEY]}


def bound(of: str, by: str = "RoleBinding", **subject: Any) -> list[dict[str, Any]]:
    """A role of a kind that reads the key, and its binding in the namespace."""
    reads: dict[str, Any] = {**role(**READS), "kind": of}
    if of == "ClusterRole":
        del reads["metadata"]["namespace"]
    made: dict[str, Any] = {**binding("router"), "kind": by}
    if by == "ClusterRoleBinding":
        del made["metadata"]["namespace"]
    made["roleRef"]["kind"] = of
    made["subjects"] = [made["subjects"][0] | subject]
    return [SECRET, reads, made]


@pytest.mark.parametrize("kind", ["Role", "ClusterRole"])
def test_a_right_counts_where_it_is_bound_and_whoever_holds_it(kind):
    rule = BY_ID["secret-rights"]
    assert found(rule, *bound(kind))
    assert found(rule, *bound(kind, kind="Group", name="system:authenticated"))
    assert found(rule, *bound(kind, kind="User", name="gateway"))
    assert not found(rule, *bound(kind, name="gateway"))


def test_a_right_in_the_whole_cluster_counts_in_each_namespace():
    assert found(BY_ID["secret-rights"], *bound("ClusterRole", "ClusterRoleBinding"))


def test_one_role_bound_twice_counts_for_both():
    assert found(BY_ID["secret-rights"], *bound("Role"), binding("gateway"))


@pytest.mark.parametrize("resource", ["pods/exec", "pods/attach", "pods/ephemeralcontainers", "serviceaccounts/token"])
def test_a_right_to_enter_a_pod_or_become_its_account_is_a_right_to_its_keys(resource):
    rule = BY_ID["secret-rights"]
    assert found(rule, role(resources=[resource], verbs=["create"]))
    assert not found(rule, role(resources=["pods", "pods/log"], verbs=["get", "create"]))


def test_a_projected_token_of_the_default_account_is_a_token_too():
    volumes = [{"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}]
    rule = BY_ID["no-default-token"]
    assert found(rule, deployment(pod_spec(volumes=volumes)))
    assert not found(rule, deployment(pod_spec(volumes=volumes, serviceAccountName="own")))


def named(name: str, **how: Any) -> dict[str, Any]:
    return deployment(pod_spec(container(env=[{"name": name, **how}])))


@pytest.mark.parametrize(
    "origin",
    [
        {"configMapKeyRef": {"name": "c", "key": "k"}},
        {"fieldRef": {"fieldPath": "metadata.annotations['x']"}},
        {"resourceFieldRef": {"resource": "limits.cpu"}},
        {"secretKeyRef": {"name": "s", "key": "k"}, "configMapKeyRef": {"name": "c", "key": "k"}},
    ],
    ids=lambda origin: "+".join(origin),
)
def test_a_variable_named_like_a_key_has_no_other_origin_than_a_secret(origin):
    assert found(BY_ID["key-by-reference"], named("CHANNEL_API_KEY_2", valueFrom=origin))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1"),
        ("MAX_TOKENS", "4096"),
        ("USE_API_KEY", "true"),
        ("SERVICE_ACCOUNT_TOKEN", "/var/run/secrets/token"),
        ("CHANNEL_TOKEN", "$(FROM_A_SECRET)"),
        ("CHANNEL_AUTHORIZATION", "Bearer $(FROM_A_SECRET)"),
        ("TOKEN_HASH", "whatever"),
    ],
)
def test_a_switch_a_count_a_path_and_a_reference_are_no_keys(name, value):
    assert not found(BY_ID["key-by-reference"], named(name, value=value))


@pytest.mark.parametrize(("name", "value"), [("PASSWORD", "123456"), ("API_KEYS", "x"), ("TOKEN", "$(A)rest")])
def test_anything_else_there_is_one(name, value):
    assert found(BY_ID["key-by-reference"], named(name, value=value))


def test_an_unknown_origin_does_not_hide_the_next_variable():
    env = [{"name": "A_TOKEN", "valueFrom": UNKNOWN}, {"name": "B_TOKEN", "value": "x"}]
    violations = found(BY_ID["key-by-reference"], deployment(pod_spec(container(env=env))))
    assert [violation.enforcement for violation in violations] == ["mandatory", "advisory"]


@pytest.mark.parametrize("field", ["timeout", "idle_timeout"])
@pytest.mark.parametrize("endless", ["0s", "0.0s", None])
def test_a_timeout_of_zero_is_none(field, endless):
    assert found(BY_ID["envoy-bounded"], route(**{"timeout": "0s", field: endless}))


@pytest.mark.parametrize("form", ["{}", "--config-yaml={}"])
def test_envoys_configuration_as_an_argument_is_judged_like_a_file(form):
    text = yaml.safe_load(envoy(filter_chains=CHAINS)["data"]["listeners.yaml"])
    one = deployment(pod_spec(container(args=[form.format(yaml.safe_dump(text, default_flow_style=True))])))
    (violation,) = found(BY_ID["external-key-outside"], one)
    assert violation.path.startswith("spec.template.spec.containers[0].args[0]")


def test_a_label_of_a_service_does_not_make_it_the_gateway():
    disguised = service("LoadBalancer") | {}
    disguised["metadata"]["labels"] = {"app.kubernetes.io/component": "gateway"}
    assert found(BY_ID["only-the-gateway-exposed"], disguised)
    assert found(BY_ID["only-the-gateway-exposed"], service("LoadBalancer", role="gateway", selector={"x": "gateway"}))


def test_containers_of_a_debugging_session_are_judged_like_others():
    loose = container(securityContext={"privileged": True})
    assert found(BY_ID["restricted-pods"], deployment(pod_spec(ephemeralContainers=[loose])))


def test_an_object_is_not_changed_by_judging_it():
    one = change(ingress(), "spec/tls", [{}])
    before = repr(one)
    for rule in RULES:
        found(rule, Object(one))
    assert repr(one) == before
