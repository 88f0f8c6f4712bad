"""For each rule: what breaks it, the same thing in order, and the same thing with an unknown value."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import yaml

from policies.objects import Object
from policies.rule import Facts
from policies.unknown import UNKNOWN
from rules import labels
from settings.boundary import network_policies
from settings.settings import Settings
from tests.policies.builders import container, deployment, fake_key, pod_spec, thing
from tests.unit.test_settings import dev

Thing = dict[str, Any] | Object

DEV = Settings.from_mapping(dev())
CHANNEL = Settings.from_mapping(
    dev()
    | {
        "channel": {"enabled": True, "key": "channel", "quotaQps": 1200},
        "keys": {"source": "config", "keys": [{"id": "channel", "purpose": "fallback", "owner": "gateway"}]},
    }
)
OPEN = Settings.from_mapping(dev() | {"gateway": {"exposure": "internal", "tls": {"source": "none"}}})
USER = Settings.from_mapping(dev() | {"clusterScope": "use"})


@dataclass(frozen=True)
class Case:
    """`bad` breaks the rule, `good` doesn't, and of `unknown` it can't be told; `path` is where the message points."""

    bad: Sequence[Thing]
    good: Sequence[Thing]
    unknown: Sequence[Thing] = ()
    path: str = ""
    facts: Facts = field(default_factory=lambda: Facts("prod"))


def change(one: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy of an object with one field changed; `path` is dotted, with numbers for positions."""
    copy = deepcopy(one)
    *parents, last = [int(part) if part.isdigit() else part for part in path.split("/")]
    place: Any = copy
    for part in parents:
        place = place[part]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return copy


def facts(settings: Settings, environment: str = "dev") -> Facts:
    return Facts(environment, settings)


POD = "spec/template/spec"
BOX = f"{POD}/containers/0"

_end = datetime.now(UTC)
SECRET = thing(
    "Secret",
    "key-app",
    metadata={
        "labels": {
            labels.PURPOSE: "client",
            labels.KEY_ID: "app",
            labels.ENVIRONMENT: "dev",
            labels.CONSUMER: "gateway",
        },
        "annotations": {labels.EXPIRES: (_end + timedelta(days=90)).isoformat()},
    },
    data={"value": "eA=="},
)
NAMESPACE = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "llm", "labels": {labels.ENVIRONMENT: "dev"}},
}


def relabel(one: dict[str, Any], kind: str, name: str, value: Any) -> dict[str, Any]:
    """A copy of an object with a label or annotation set, or removed with None."""
    copy = deepcopy(one)
    if value is None:
        copy["metadata"][kind].pop(name)
    else:
        copy["metadata"].setdefault(kind, {})[name] = value
    return copy


def reader(app: Any, secret: Any = "key-app") -> dict[str, Any]:
    spec = pod_spec(volumes=[{"name": "keys", "secret": {"secretName": secret}}])
    one = deployment(spec)
    one["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"] = app
    return one


def role(**rule: Any) -> dict[str, Any]:
    return thing("Role", "reads", api="rbac.authorization.k8s.io/v1", rules=[{"apiGroups": [""], **rule}])


def binding(account: str, to: str = "reads") -> dict[str, Any]:
    subjects = [{"kind": "ServiceAccount", "name": account, "namespace": "llm"}]
    return thing(
        "RoleBinding", api="rbac.authorization.k8s.io/v1", roleRef={"kind": "Role", "name": to}, subjects=subjects
    )


CHIP = "huawei.com/Ascend910"
CHIPS = container(
    resources={"requests": {CHIP: "8"}, "limits": {CHIP: "8"}},
    startupProbe={"httpGet": {"path": "/health", "port": 8000}},
)
ENGINE = deployment(
    pod_spec(
        CHIPS,
        nodeSelector={labels.NODE_POOL: "high-memory", labels.POOL: "ascend", labels.ARCH: "amd64"},
        terminationGracePeriodSeconds=90,
    ),
    "engine",
    replicas=2,
    strategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
)
ENGINE["spec"]["template"]["metadata"] = {
    "labels": {"app": "engine", labels.MODEL: "dev-wide", labels.ROLE: "prefill", labels.REVISION: "r1"},
    "annotations": {labels.KV_IDENTITY: "one"},
}
ENGINE["spec"]["template"]["spec"]["containers"][0]["lifecycle"] = {"preStop": {"sleep": {"seconds": 8}}}


def engine(name: str, identity: Any, model: str = "dev-wide") -> dict[str, Any]:
    one = deepcopy(ENGINE)
    one["metadata"]["name"] = name
    one["spec"]["template"]["metadata"]["annotations"][labels.KV_IDENTITY] = identity
    one["spec"]["template"]["metadata"]["labels"][labels.MODEL] = model
    return one


def scaler(
    name: str = "hpa", kind: str = "HorizontalPodAutoscaler", target: Any = "app", **spec: Any
) -> dict[str, Any]:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}
    body = {"scaleTargetRef": reference, "minReplicas": 2, "maxReplicas": 10, **spec}
    return thing(kind, name, api="autoscaling/v2", spec=body)


def on_metric(name: Any, goal: str = "10") -> dict[str, Any]:
    metric = {
        "type": "Pods",
        "pods": {"metric": {"name": name}, "target": {"type": "AverageValue", "averageValue": goal}},
    }
    return scaler(metrics=[metric])


def service(kind: Any = "ClusterIP", app: Any = "app", **more: Any) -> dict[str, Any]:
    return thing(
        "Service", app if isinstance(app, str) else "thing", spec={"type": kind, "selector": {"app": app}, **more}
    )


def serving(roles: Sequence[str] = ("prefill", "decode")) -> dict[str, Any]:
    templates = [{"name": name, "entryTemplate": {"spec": pod_spec()}} for name in roles]
    return thing(
        "ModelServing", "m", api="workload.serving.volcano.sh/v1alpha1", spec={"template": {"roles": templates}}
    )


def server(selects: Any = "m") -> dict[str, Any]:
    group = {
        "prefillLabels": {"modelserving.volcano.sh/role": "prefill"},
        "decodeLabels": {"modelserving.volcano.sh/role": "decode"},
    }
    selector = {"matchLabels": {"modelserving.volcano.sh/name": selects}, "pdGroup": group}
    return thing("ModelServer", "m", api="networking.serving.volcano.sh/v1alpha1", spec={"workloadSelector": selector})


def api_service(name: str = "v1beta2.custom.metrics.k8s.io") -> dict[str, Any]:
    return {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": name}, "spec": {}}


def ingress(backend: Any = "gateway", **spec: Any) -> dict[str, Any]:
    paths = [{"path": "/", "backend": {"service": {"name": backend, "port": {"number": 443}}}}]
    return thing(
        "Ingress", api="networking.k8s.io/v1", spec={"tls": [{}], "rules": [{"http": {"paths": paths}}], **spec}
    )


def policy(name: str, spec: Any) -> dict[str, Any]:
    return thing("NetworkPolicy", name, api="networking.k8s.io/v1", spec=spec)


BOUNDARY = [policy(name, spec) for name, spec in network_policies(DEV).items()]


def envoy(**document: Any) -> dict[str, Any]:
    listener = {"@type": "type.googleapis.com/envoy.config.listener.v3.Listener", "name": "in", **document}
    return thing("ConfigMap", "gateway-envoy", data={"listeners.yaml": yaml.safe_dump({"resources": [listener]})})


def route(**fields: Any) -> dict[str, Any]:
    return envoy(
        route_config={"virtual_hosts": [{"routes": [{"match": {"prefix": "/"}, "route": {"cluster": "c", **fields}}]}]}
    )


INJECTOR = {"@type": "type.googleapis.com/envoy.extensions.filters.http.credential_injector.v3.CredentialInjector"}
CHAINS = [{"filters": [{"typed_config": {"http_filters": [{"name": "key", "typed_config": INJECTOR}]}}]}]


def key_variable(**how: Any) -> dict[str, Any]:
    return deployment(pod_spec(container(env=[{"name": "TAOTOKEN_API_KEY", **how}])))


def mounted(**mount: Any) -> dict[str, Any]:
    mounts = [{"name": "keys", "mountPath": "/k", **mount}]
    return deployment(
        pod_spec(container(volumeMounts=mounts), volumes=[{"name": "keys", "secret": {"secretName": "s"}}])
    )


def provider(**inputs: Any) -> Object:
    return Object(
        inputs, type="pulumi:providers:kubernetes", urn="urn:pulumi:dev::m::pulumi:providers:kubernetes::cluster"
    )


APP = deployment()

CASES: dict[str, Case] = {
    "no-key-text": Case(
        bad=[thing("ConfigMap", data={"x": fake_key()})],
        good=[thing("ConfigMap", data={"x": "fine"})],
        unknown=[thing("ConfigMap", data={"x": UNKNOWN})],
        path="data.x",
    ),
    "key-by-reference": Case(
        bad=[key_variable(value="x")],
        good=[key_variable(valueFrom={"secretKeyRef": {"name": "s", "key": "k"}})],
        unknown=[key_variable(value=UNKNOWN)],
        path="spec.template.spec.containers[0].env[0].value",
    ),
    "secret-as-directory": Case(
        bad=[mounted(subPath="k")], good=[mounted()], unknown=[mounted(subPath=UNKNOWN)], path="subPath"
    ),
    "secret-consumer": Case(
        bad=[SECRET, reader("router")],
        good=[SECRET, reader("gateway"), reader("router", "other")],
        unknown=[SECRET, reader(UNKNOWN)],
        path="spec.template.spec.volumes[keys]",
    ),
    "secret-rights": Case(
        bad=[SECRET, role(resources=["secrets"], verbs=["get"], resourceNames=["key-app"]), binding("router")],
        good=[SECRET, role(resources=["secrets"], verbs=["get"], resourceNames=["key-app"]), binding("gateway")],
        unknown=[SECRET, role(resources=["secrets"], verbs=UNKNOWN), binding("gateway")],
        path="rules[0]",
    ),
    "no-default-token": Case(
        bad=[change(APP, f"{POD}/automountServiceAccountToken", None)],
        good=[
            APP,
            change(change(APP, f"{POD}/automountServiceAccountToken", True), f"{POD}/serviceAccountName", "own"),
        ],
        unknown=[change(APP, f"{POD}/serviceAccountName", UNKNOWN)],
        path="spec.template.spec.automountServiceAccountToken",
    ),
    "key-metadata": Case(
        bad=[relabel(SECRET, "labels", labels.PURPOSE, "fun")],
        good=[SECRET, thing("Secret", data={})],
        unknown=[relabel(SECRET, "labels", labels.PURPOSE, UNKNOWN)],
        path=labels.PURPOSE,
    ),
    "key-expiry": Case(
        bad=[relabel(SECRET, "annotations", labels.EXPIRES, (_end - timedelta(days=1)).isoformat())],
        good=[SECRET],
        unknown=[relabel(SECRET, "annotations", labels.EXPIRES, UNKNOWN)],
        path=labels.EXPIRES,
    ),
    "key-environment": Case(
        bad=[NAMESPACE, relabel(SECRET, "labels", labels.ENVIRONMENT, "prod")],
        good=[NAMESPACE, SECRET],
        unknown=[NAMESPACE, relabel(SECRET, "labels", labels.ENVIRONMENT, UNKNOWN)],
        path=labels.ENVIRONMENT,
    ),
    "chips-equal": Case(
        bad=[change(ENGINE, f"{BOX}/resources/limits", {CHIP: "4"})],
        good=[ENGINE, APP, change(ENGINE, f"{BOX}/resources/requests", None)],
        unknown=[change(ENGINE, f"{BOX}/resources/limits", {CHIP: UNKNOWN})],
        path="spec.template.spec.containers[0].resources",
    ),
    "chips-startup-probe": Case(
        bad=[change(ENGINE, f"{BOX}/startupProbe", None)],
        good=[ENGINE, APP],
        unknown=[change(ENGINE, f"{BOX}/startupProbe", UNKNOWN)],
        path="startupProbe",
    ),
    "chips-on-a-pool": Case(
        bad=[change(ENGINE, f"{POD}/nodeSelector", {labels.NODE_POOL: "high-memory"})],
        good=[ENGINE, APP],
        unknown=[change(ENGINE, f"{POD}/nodeSelector", UNKNOWN)],
        path=labels.ARCH,
        facts=facts(DEV),
    ),
    "selectors-match": Case(
        bad=[APP, service(app="apps")], good=[APP, service()], unknown=[APP, service(app=UNKNOWN)], path="spec.selector"
    ),
    "kthena-names-match": Case(
        bad=[serving(), server("n")],
        good=[serving(), server()],
        unknown=[serving(), server(UNKNOWN)],
        path="spec.workloadSelector.matchLabels",
    ),
    "selectors-disjoint": Case(
        bad=[APP, change(APP, "metadata/name", "twin")],
        good=[APP, deployment(name="other")],
        unknown=[change(APP, "spec/selector", UNKNOWN), deployment(name="other")],
        path="spec.selector.matchLabels",
    ),
    "grace-covers-drain": Case(
        bad=[change(ENGINE, f"{POD}/terminationGracePeriodSeconds", 60)],
        good=[ENGINE, APP],
        unknown=[change(ENGINE, f"{POD}/terminationGracePeriodSeconds", UNKNOWN)],
        path="spec.template.spec.terminationGracePeriodSeconds",
        facts=facts(DEV),
    ),
    "kv-identity": Case(
        bad=[engine("a", "one"), engine("b", "two")],
        good=[engine("a", "one"), engine("b", "one"), engine("c", "two", "other")],
        unknown=[engine("a", "one"), engine("b", UNKNOWN)],
        path=labels.KV_IDENTITY,
    ),
    "rollout-fits": Case(
        bad=[change(ENGINE, "spec/replicas", 4)],
        good=[change(ENGINE, "spec/replicas", 3), APP],
        unknown=[change(ENGINE, "spec/replicas", UNKNOWN)],
        path="spec.strategy.rollingUpdate",
        facts=facts(DEV, "prod"),
    ),
    "scaled-without-replicas": Case(
        bad=[scaler(), deployment(replicas=3)],
        good=[scaler(), deployment()],
        unknown=[scaler(target=UNKNOWN), deployment(replicas=3)],
        path="spec.replicas",
    ),
    "one-scaler-a-target": Case(
        bad=[scaler("a"), scaler("b", "ScaledObject")],
        good=[scaler("a"), scaler("b", target="other")],
        unknown=[scaler("a"), scaler("b", target=UNKNOWN)],
        path="spec.scaleTargetRef",
    ),
    "scaler-metrics": Case(
        bad=[on_metric("inference_queue_dept")],
        good=[on_metric("inference_queue_depth"), scaler()],
        unknown=[on_metric(UNKNOWN)],
        path="spec.metrics[0].pods",
    ),
    "scaler-ranges": Case(
        bad=[scaler(minReplicas=20)],
        good=[scaler()],
        unknown=[scaler(maxReplicas=UNKNOWN)],
        path="spec.minReplicas",
    ),
    "gateway-quota": Case(
        bad=[scaler(target="gateway", maxReplicas=11)],
        good=[scaler(target="gateway", maxReplicas=10), scaler("other", maxReplicas=99)],
        unknown=[scaler(target="gateway", maxReplicas=UNKNOWN)],
        path="spec.maxReplicas",
        facts=facts(CHANNEL),
    ),
    "one-api-owner": Case(
        bad=[api_service(), api_service()],
        good=[api_service(), api_service("v1beta1.external.metrics.k8s.io"), APP],
        unknown=[change(api_service(), "metadata/name", UNKNOWN)],
        path="metadata.name",
    ),
    "only-the-gateway-exposed": Case(
        bad=[service("NodePort")],
        good=[service(), service("LoadBalancer", "gateway"), ingress()],
        unknown=[service(UNKNOWN)],
        path="spec.type",
    ),
    "exposed-with-tls": Case(
        bad=[service("NodePort", "gateway")],
        good=[service(app="gateway"), ingress()],
        unknown=[ingress(tls=UNKNOWN)],
        path="spec.type",
        facts=facts(OPEN),
    ),
    "network-policies": Case(
        bad=[APP],
        good=[APP, *BOUNDARY],
        unknown=[
            change(one, "metadata/namespace", "other")
            for one in (APP, policy("default-deny", {"podSelector": UNKNOWN}))
        ],
        path="metadata.namespace",
        facts=facts(DEV, "prod"),
    ),
    "within-flow-graph": Case(
        bad=[*BOUNDARY, policy("extra", {"podSelector": {}, "ingress": [{"from": [{"podSelector": {}}]}]})],
        good=BOUNDARY,
        unknown=[policy("allow-engine", UNKNOWN)],
        path="metadata.name",
        facts=facts(DEV),
    ),
    "nothing-wide-open": Case(
        bad=[policy("p", {"podSelector": {}, "ingress": [{}]})],
        good=BOUNDARY,
        unknown=[policy("p", {"podSelector": {}, "ingress": UNKNOWN})],
        path="spec.ingress[0]",
    ),
    "no-wildcard-rights": Case(
        bad=[role(resources=["pods"], verbs=["*"])],
        good=[role(resources=["pods"], verbs=["list"]), binding("x")],
        unknown=[role(resources=["pods"], verbs=[UNKNOWN])],
        path="rules[0].verbs",
    ),
    "cluster-identifier": Case(
        bad=[provider()],
        good=[provider(clusterIdentifier="c")],
        unknown=[provider(clusterIdentifier=UNKNOWN)],
        path="clusterIdentifier",
    ),
    "restricted-pods": Case(
        bad=[change(APP, f"{BOX}/securityContext/privileged", True)],
        good=[APP],
        unknown=[change(APP, f"{BOX}/securityContext/privileged", UNKNOWN)],
        path="privileged",
    ),
    "pinned-images": Case(
        bad=[change(APP, f"{BOX}/image", "registry.test/app:1.2.3")],
        good=[APP],
        unknown=[change(APP, f"{BOX}/image", UNKNOWN)],
        path="image",
    ),
    "envoy-bounded": Case(
        bad=[route(timeout="0s", retry_policy={"num_retries": 2})],
        good=[route(timeout="30s"), route(timeout="0s", idle_timeout="60s", retry_policy={"num_retries": 2})],
        unknown=[thing("ConfigMap", "gateway-envoy", data={"listeners.yaml": UNKNOWN})],
        path="route",
    ),
    "external-key-outside": Case(
        bad=[envoy(filter_chains=CHAINS)],
        good=[envoy(filter_chains=CHAINS, internal_listener={})],
        unknown=[thing("ConfigMap", "gateway-envoy", data=UNKNOWN)],
        path="data[listeners.yaml]",
    ),
}
