"""Scalers, warm pool, controller and monitoring as they are declared."""

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pulumi
import pytest
import yaml
from cryptography import x509

from capacity.config import ControllerConfig
from components.capacity_controller import CapacityController
from components.elasticity import elasticity
from components.namespace import Namespace
from components.pd_serving import PdServing, PdServingArgs, deployment
from components.scaling import monitoring
from components.scaling.certificates import new_authority, new_certificate
from components.scaling.hpa import gateway_hpa
from components.scaling.keda import query
from components.serving_plan import engine_plans
from rules.metrics import served
from rules.metrics.lint import ScalingRule, lint_query, lint_rule
from settings.local_runtime import LocalRuntime
from settings.settings import Settings
from tests.unit.components.conftest import IMAGES, Recorder
from tests.unit.pulumi_engine import holds_secret, plain

Declare = Callable[..., Recorder]


def elastic(dev_values: dict[str, Any], **engines: Any) -> Settings:
    dev_values["nodePools"][0] |= {"mode": "existing", "nodes": [], "count": 100, "chipsPerNode": 8}
    dev_values["autoscaling"] = {"gateway": {"enabled": True}, "engines": {"enabled": True, **engines}}
    dev_values["warmPool"] = {"enabled": True}
    dev_values["observability"] = {"podMonitors": True, "alerts": True, "dashboards": True}
    return Settings.from_mapping(dev_values)


@pytest.fixture
def runtime() -> LocalRuntime:
    """The same paths for every test, as declarations are shared."""
    return LocalRuntime.model_validate(
        {
            "images": IMAGES,
            "engine": {"hostPath": "/engine", "mountPath": "/opt/engine", "command": ["vllm", "serve"]},
            "models": {"dev-wide": {"path": "/models/dev-wide", "revision": "a" * 64}},
        }
    )


_RECORDED: dict[str, Recorder] = {}


@pytest.fixture
def declared(declare_stack: Declare, runtime: LocalRuntime) -> Callable[[Settings], Recorder]:
    """Declares a stack's elasticity; the same settings are declared once for all tests that only look."""

    def run(settings: Settings) -> Recorder:
        key = settings.model_dump_json()
        if key not in _RECORDED:
            plans = engine_plans(settings, IMAGES, runtime, "dev")
            _RECORDED[key] = declare_stack(lambda context: elasticity(settings, plans, context))
        return _RECORDED[key]

    return run


def test_each_role_is_scaled_by_what_binds_it(declared: Callable, dev_values: dict[str, Any]):
    hpas = declared(elastic(dev_values)).created("HorizontalPodAutoscaler")
    metrics = {
        name: {m["pods"]["metric"]["name"]: m["pods"]["target"]["averageValue"] for m in hpa["spec"]["metrics"]}
        for name, hpa in hpas.items()
    }
    assert metrics["dev-wide-prefill-ascend"] == {"inference_queue_depth": "10", "inference_ttft_seconds": "2"}
    assert metrics["dev-wide-decode-ascend"] == {"gpu_memory_utilization": "85", "inference_running_requests": "12"}


def test_the_hpa_has_the_declared_bounds_and_behaviour(declared: Callable, dev_values: dict[str, Any]):
    settings = elastic(
        dev_values, scaleUpWindowSeconds=15, scaleUpPods=3, scaleUpPeriodSeconds=45, scaleDownWindowSeconds=200,
        scaleDownPods=2, scaleDownPeriodSeconds=90, roles={"decode": {"minReplicas": 1, "maxReplicas": 7}},
    )  # fmt: skip
    spec = declared(settings).created("HorizontalPodAutoscaler")["dev-wide-decode-ascend"]["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (1, 7)
    up, down = spec["behavior"]["scaleUp"], spec["behavior"]["scaleDown"]
    assert (up["stabilizationWindowSeconds"], up["policies"][0]["value"], up["policies"][0]["periodSeconds"]) == (
        15,
        3,
        45,
    )
    assert down["stabilizationWindowSeconds"] == 200
    assert (down["policies"][0]["value"], down["policies"][0]["periodSeconds"]) == (2, 90)


def test_the_gateways_scaler_keeps_its_own_range(dev_values: dict[str, Any]):
    settings = elastic(dev_values)
    hpa = gateway_hpa(settings.autoscaling.gateway, settings.channel.ratelimit.qps_per_pod, context_stub())
    assert (hpa["spec"]["minReplicas"], hpa["spec"]["maxReplicas"]) == (8, 256)
    assert hpa["spec"]["metrics"][0]["pods"]["target"]["averageValue"] == "90"
    assert hpa["spec"]["behavior"]["scaleDown"]["tolerance"] == "533m"


def context_stub() -> Any:
    class Stub:
        stack, namespace = "dev", "moonstack-dev"

        def metadata(self, name: str, component: str, **more: Any) -> dict[str, Any]:
            return {"name": name}

    return Stub()


def test_one_scaler_a_deployment_and_only_for_native_models(declared: Callable, dev_values: dict[str, Any]):
    recorder = declared(elastic(dev_values))
    targets = [h["spec"]["scaleTargetRef"]["name"] for h in recorder.created("HorizontalPodAutoscaler").values()]
    assert sorted(targets) == ["dev-wide-decode-ascend", "dev-wide-prefill-ascend", "gateway"]


def test_keda_takes_the_place_of_the_hpas_from_the_same_declaration(declared: Callable, dev_values: dict[str, Any]):
    keda = {"implementation": "keda", "prometheusUrl": "http://prometheus.monitoring:9090"}
    own = {"name": "tokens", "query": "sum(rate(vllm:prompt_tokens_total[1m]))", "target": 5000}
    recorder = declared(elastic(dev_values, **keda, triggers=[own]))
    assert list(recorder.created("HorizontalPodAutoscaler")) == ["gateway"]
    decode = recorder.created("ScaledObject")["dev-wide-decode-ascend"]["spec"]
    assert (decode["minReplicaCount"], decode["maxReplicaCount"]) == (2, 10)
    thresholds = {t["name"]: t["metadata"]["threshold"] for t in decode["triggers"]}
    assert thresholds == {"gpu-memory-utilization": "0.85", "inference-running-requests": "12", "tokens": "5000"}
    assert all(t["metadata"]["ignoreNullValues"] == "false" for t in decode["triggers"])
    assert {"pollingInterval", "cooldownPeriod"} & decode.keys() == set(), "KEDA warns of them beside a minimum above 0"


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_every_query_of_ours_passes_the_linter(engine: str, dev_values: dict[str, Any]):
    settings = elastic(dev_values, engine=engine)
    targets = {served.QUEUE_DEPTH: 10, served.RUNNING: 12, served.KV_UTILIZATION: 85, served.TTFT: 2}
    for metric, value in targets.items():
        text, factor, _ = query(settings.autoscaling.engines, metric, "m-decode-p", "n")
        assert lint_rule(ScalingRule(path=metric, query=text, target=value * factor)) == []


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_engines_without_requests_have_a_first_token_of_0_and_not_nan(engine: str, dev_values: dict[str, Any]):
    """A quantile over nothing is NaN, which KEDA takes for a broken trigger: replicas would never fall."""
    text, _, _ = query(elastic(dev_values, engine=engine).autoscaling.engines, served.TTFT, "m-decode-p", "n")
    quantile, otherwise = text.split(" or ")
    assert quantile.startswith("(histogram_quantile(") and quantile.endswith(" >= 0)")
    assert otherwise.startswith("0 * sum(rate(")


def test_a_foreign_adapter_gets_rules_and_no_rival(declared: Callable, dev_values: dict[str, Any]):
    recorder = declared(elastic(dev_values, metricsSource="prometheus-adapter"))
    assert recorder.created("APIService") == {}
    rules = yaml.safe_load(recorder.created("ConfigMap")["capacity-controller-adapter-rules"]["data"]["config.yaml"])
    assert {rule["name"]["as"] for rule in rules["rules"]} == {m.name for m in served.SERVED} - {served.GATEWAY_QPS}


def test_without_scalers_nothing_is_declared(declared: Callable, dev_values: dict[str, Any]):
    recorder = declared(Settings.from_mapping(dev_values))
    assert {one.typ for one in recorder.resources} == {"pulumi:providers:kubernetes"}


def test_warm_pods_are_the_engines_own_pods_apart_from_labels(
    declared: Callable, dev_values: dict[str, Any], runtime: LocalRuntime
):
    settings = elastic(dev_values)
    plan = engine_plans(settings, IMAGES, runtime, "dev")[0]
    warm = declared(settings).created("Deployment")["dev-wide-prefill-ascend-warm"]["spec"]
    serving = deployment(plan, context_stub())["spec"]
    assert plain(warm["template"]["spec"]) == serving["template"]["spec"]
    assert warm["replicas"] == 2
    pod = warm["template"]["metadata"]["labels"]
    assert (pod["moonstack.dev/routed"], pod["warm"], pod["ready"]) == ("false", "true", "false")


def test_no_scaler_ever_counts_a_warm_pod(declared: Callable, dev_values: dict[str, Any], runtime: LocalRuntime):
    settings = elastic(dev_values)
    warm = declared(settings).created("Deployment")["dev-wide-decode-ascend-warm"]["spec"]
    serving = next(p for p in engine_plans(settings, IMAGES, runtime, "dev") if p.role == "decode")
    pod = warm["template"]["metadata"]["labels"]
    assert not serving.selector.items() <= pod.items()
    assert not warm["selector"]["matchLabels"].items() <= serving.labels.items()
    assert not {"moonstack.dev/routed", "warm", "ready"} & warm["selector"]["matchLabels"].keys()


def test_turning_the_scaler_on_keeps_replicas_and_ignores_them(
    declare_stack: Declare, dev_values: dict[str, Any], runtime: LocalRuntime
):
    """Left out of the manifest of a running stack, replicas would fall to 1 (kubernetes/kubernetes#67135)."""
    settings = elastic(dev_values)
    plans = tuple(engine_plans(settings, IMAGES, runtime, "dev"))
    ignored: dict[tuple[str, str], list[str]] = {}

    def remember(args: pulumi.ResourceTransformationArgs) -> None:
        ignored[args.type_.rpartition(":")[2], args.name] = list(args.opts.ignore_changes or [])

    def program(ctx: Any) -> None:
        pulumi.runtime.register_stack_transformation(remember)
        PdServing("m", PdServingArgs(model=plans[0].model, engines=plans, scaled=True), ctx)
        elasticity(settings, plans, ctx)

    recorder = declare_stack(program)
    assert recorder.created("Deployment")["dev-wide-prefill-ascend"]["spec"]["replicas"] == 2
    assert ignored["Deployment", "dev-wide-prefill-ascend"] == ["spec.replicas"]
    assert ignored["Deployment", "dev-wide-prefill-ascend-warm"] == ["spec.replicas"]
    assert ignored["HorizontalPodAutoscaler", "dev-wide-prefill-ascend"] == ["spec.minReplicas"]
    assert ignored["HorizontalPodAutoscaler", "gateway"] == ["spec.minReplicas"]
    assert ignored["Deployment", "dev-wide-router"] == []


def test_the_controller_runs_twice_without_rights_it_does_not_need(declared: Callable, dev_values: dict[str, Any]):
    recorder = declared(elastic(dev_values))
    deployment = recorder.created("Deployment")["capacity-controller"]["spec"]
    container = deployment["template"]["spec"]["containers"][0]
    assert deployment["replicas"] == 2
    assert (
        container["securityContext"]["readOnlyRootFilesystem"]
        and not container["securityContext"]["allowPrivilegeEscalation"]
    )
    rules = recorder.created("Role")["capacity-controller"]["rules"]
    unnamed = {(tuple(r["resources"]), tuple(r["verbs"])) for r in rules if "resourceNames" not in r}
    assert unnamed == {(("pods",), ("get", "list", "watch", "patch")), (("leases",), ("create",))}
    assert recorder.created("ClusterRole") == {}
    policy = recorder.created("ValidatingAdmissionPolicy")["capacity-controller-moonstack-dev"]["spec"]
    assert any("object.spec == oldObject.spec" in v["expression"] for v in policy["validations"])


def test_what_lies_in_kube_system_is_deleted_by_name_and_not_with_the_stacks_namespace(
    declare_stack: Declare, dev_values: dict[str, Any]
):
    settings, gone_with = elastic(dev_values), {}

    def remember(args: pulumi.ResourceTransformationArgs) -> None:
        gone_with[args.type_.rpartition(":")[2], args.name] = args.opts.deleted_with

    def program(ctx: Any) -> None:
        pulumi.runtime.register_stack_transformation(remember)
        namespace = Namespace(ctx.namespace, "restricted", ctx)
        CapacityController("c", settings, replace(ctx, namespace_object=namespace.resources.namespace))

    declare_stack(program)
    assert gone_with["RoleBinding", "capacity-controller-moonstack-dev"] is None
    assert gone_with["RoleBinding", "capacity-controller"] is not None


def test_the_api_is_trusted_by_the_authority_that_signed_its_certificate(
    declared: Callable, dev_values: dict[str, Any]
):
    recorder = declared(elastic(dev_values))
    spec = recorder.created("APIService")["v1beta2.custom.metrics.k8s.io"]["spec"]
    authority = x509.load_pem_x509_certificate(base64.b64decode(spec["caBundle"]))
    secrets = recorder.created("Secret")
    name = next(name for name in secrets if name.startswith("capacity-controller-tls-"))
    certificate = x509.load_pem_x509_certificate(base64.b64decode(plain(secrets[name]["data"])["tls.crt"]))
    certificate.verify_directly_issued_by(authority)
    hosts = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert hosts.get_values_for_type(x509.DNSName) == ["capacity-controller.moonstack-dev.svc"]
    mounted = recorder.created("Deployment")["capacity-controller"]["spec"]["template"]["spec"]["volumes"]
    assert name in [v["secret"]["secretName"] for v in mounted if "secret" in v]


def test_private_keys_are_secret_and_pods_are_not(declared: Callable, dev_values: dict[str, Any]):
    recorder = declared(elastic(dev_values))
    assert all(holds_secret(secret["data"]) for secret in recorder.created("Secret").values())
    for kind in ("Deployment", "APIService", "ConfigMap"):
        assert not any(holds_secret(found) for found in recorder.created(kind).values()), kind


def test_a_certificate_needs_its_authority():
    authority, other = new_authority("a"), new_authority("b")
    certificate = x509.load_pem_x509_certificate(new_certificate(authority, ["x.svc"]).certificate.encode())
    with pytest.raises(Exception, match=r"Issuer|issuer"):
        certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(other.certificate.encode()))


def test_the_controllers_file_says_what_the_settings_say(declared: Callable, dev_values: dict[str, Any]):
    settings = elastic(
        dev_values,
        ttftWindowSeconds=90,
        prediction={"marginPercent": 30, "requestsPerPod": 4},
        decodePerPrefill=0.5,
        schedule=[{"role": "decode", "start": "08:00", "end": "18:00", "minReplicas": 4}],
    )
    text = declared(settings).created("ConfigMap")["capacity-controller"]["data"]["config.json"]
    config = ControllerConfig.model_validate_json(text)
    decode = config.target("dev-wide-decode-ascend")
    assert (config.ttft_window, config.prediction.margin_percent, decode.requests_per_pod) == (90, 30, 4)
    assert (decode.per_other, decode.windows[0].replicas, decode.warm) == (0.5, 4, "dev-wide-decode-ascend-warm")
    assert config.target("dev-wide-prefill-ascend").windows == ()
    gateway = config.target("gateway")
    assert (gateway.low, gateway.high, gateway.requests_per_pod) == (8, 256, 90)


def test_every_alert_and_panel_reads_metrics_that_exist(declared: Callable, dev_values: dict[str, Any]):
    recorder = declared(elastic(dev_values))
    rules = recorder.created("PrometheusRule")["moonstack"]["spec"]["groups"][0]["rules"]
    dashboard = json.loads(recorder.created("ConfigMap")["moonstack-dashboard"]["data"]["moonstack-dev.json"])
    queries = [rule["expr"] for rule in rules] + [p["targets"][0]["expr"] for p in dashboard["panels"]]
    assert len(queries) > 12
    assert [problem.line() for text in queries for problem in lint_query("query", text)] == []


def test_alerts_follow_their_settings(declared: Callable, dev_values: dict[str, Any]):
    settings = elastic(dev_values)
    watched = settings.observability.model_copy(update={"ttft_alert_seconds": 7.5, "channel_share_alert": 0.45})
    settings = settings.model_copy(
        update={"observability": watched, "kv_store": settings.kv_store.model_copy(update={"enabled": False})}
    )
    found = {alert.name: alert.query for alert in monitoring.stack_alerts(settings)}
    assert "> 7.5" in found["FirstTokenSlow"] and "> 0.45" in found["ChannelShareHigh"]
    assert "StoreClientsMissing" not in found


def test_every_part_is_scraped_where_it_listens(declared: Callable, dev_values: dict[str, Any]):
    monitors = declared(elastic(dev_values)).created("PodMonitor")
    ports = {name: m["spec"]["podMetricsEndpoints"][0]["portNumber"] for name, m in monitors.items()}
    assert ports == {
        "moonstack-engine": 8000, "moonstack-router": 29000, "moonstack-gateway": 9102,
        "moonstack-kv-store": 9003, "moonstack-capacity": 9104,
    }  # fmt: skip
