"""Operators that the stack counts on: Kthena, KEDA, Karpenter, Gateway API, the Prometheus operator; free names and APIs."""

from rules import kthena
from settings.settings import Settings
from smoke.doctor.diagnosis import Finding
from smoke.preflight.inventory import Inventory, finding, labels_of


def kthena_is_there(settings: Settings, inventory: Inventory) -> list[Finding]:
    """The release that the settings name, with its webhooks up and its router where the gateway looks for it."""
    if not any(model.backend == "kthena" for model in settings.models):
        return []
    release = settings.kthena.release
    found = [
        finding(
            "kthena", "error", kind, f"Kthena {release} serves it, this cluster doesn't", f"install Kthena {release}"
        )
        for kind, group in kthena.KINDS[release].items()
        if not inventory.serves(group, kind)
    ]
    if release == "1.0" and inventory.serves(kthena.WORKLOAD, "AutoscalingPolicyBinding"):
        cause = "the cluster serves AutoscalingPolicyBinding, which Kthena 1.0 has removed"
        found.append(finding("kthena", "error", "cluster", cause, 'set kthena.release to "0.4", or upgrade Kthena'))
    found += [
        finding(
            "kthenaWebhook",
            "error",
            name,
            "has no ready endpoint, so every object is refused",
            "start Kthena's manager",
        )
        for name in inventory.webhooks_down
    ]
    service, _, rest = settings.gateway.kthena_router.partition(".")
    namespace = rest.partition(".")[0].partition(":")[0]
    if namespace and f"{namespace}/{service}" not in inventory.services and "services" not in inventory.blind:
        cause = f"there is no Service {service} in namespace {namespace}"
        found.append(finding("kthenaRouter", "error", "gateway.kthenaRouter", cause, "correct the address"))
    return found


def model_names_are_free(settings: Settings, inventory: Inventory) -> list[Finding]:
    """Kthena looks routes up by model name in all namespaces, oldest first."""
    mine = {model.name for model in settings.models if model.backend == "kthena"}
    return [
        finding(
            "modelName",
            "error",
            f"modelroute/{route['metadata']['namespace']}/{route['metadata']['name']}",
            f"routes {route['spec']['modelName']} already, and the older route wins in the whole cluster",
            "rename the model, or remove the other route",
        )
        for route in inventory.model_routes
        if route["spec"].get("modelName") in mine and route["metadata"]["namespace"] != settings.cluster.namespace
    ]


def metrics_api_is_free(settings: Settings, inventory: Inventory) -> list[Finding]:
    """One server a group: two adapters of custom.metrics.k8s.io hijack each other's scalers."""
    engines = settings.autoscaling.engines
    if not engines.enabled or engines.metrics_source != "builtin":
        return []
    return [
        finding(
            "customMetrics",
            "error",
            f"apiservice/{service['metadata']['name']}",
            "belongs to another metrics adapter",
            "set autoscaling.engines.metricsSource to prometheus-adapter, or remove the other adapter",
        )
        for service in inventory.api_services
        if service["spec"].get("group") == "custom.metrics.k8s.io"
        and labels_of(service).get("app.kubernetes.io/part-of") != "moonstack"
    ]


def optional_parts_are_served(settings: Settings, inventory: Inventory) -> list[Finding]:
    """Kinds of other operators that some setting declares."""
    observed = settings.observability
    by_route, gateway_api = settings.gateway.exposure == "gatewayApi", "gateway.networking.k8s.io/v1"
    wanted = (
        (any(pool.mode == "karpenter" for pool in settings.node_pools), "karpenter.sh/v1", "NodePool", "Karpenter"),
        (settings.autoscaling.engines.implementation == "keda", "keda.sh/v1alpha1", "ScaledObject", "KEDA"),
        (by_route, gateway_api, "HTTPRoute", "the Gateway API, 1.4 or newer"),
        (by_route, gateway_api, "BackendTLSPolicy", "the Gateway API, 1.4 or newer"),
        (observed.pod_monitors, "monitoring.coreos.com/v1", "PodMonitor", "the Prometheus operator"),
        (observed.alerts, "monitoring.coreos.com/v1", "PrometheusRule", "the Prometheus operator"),
    )
    return [
        finding("operator", "error", kind, f"{group} isn't served", f"install {operator}, or change the setting")
        for needed, group, kind, operator in wanted
        if needed and not inventory.serves(group, kind)
    ]


CHECKS = (
    kthena_is_there,
    model_names_are_free,
    metrics_api_is_free,
    optional_parts_are_served,
)
