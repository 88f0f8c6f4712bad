"""A model's ModelServer and ModelRoute."""

from components.context import Context
from components.kthena.crd.networking import (
    KvConnector,
    ModelRoute,
    ModelRouteSpec,
    ModelServer,
    ModelServerSpec,
    PdGroup,
    RateLimit,
    Retry,
    RouteRule,
    TargetModel,
    TrafficPolicy,
    WorkloadPort,
    WorkloadSelector,
)
from rules import kthena, names, ports
from rules.connectors import KthenaConnector, kthena_type
from settings.kthena import KthenaSettings, RouteRateLimit
from settings.models import ModelSettings


def model_server(model: ModelSettings, settings: KthenaSettings, context: Context) -> ModelServer:
    """How the router finds the model's engines; its name is the ModelServing's."""
    name = names.model_serving(model.name)
    return ModelServer(
        metadata=context.metadata(name, "router"),
        spec=ModelServerSpec(
            model=model.name,
            workload_selector=WorkloadSelector(
                match_labels={kthena.SERVING_LABEL: name, **_entry(model)}, pd_group=_pd_group(model)
            ),
            workload_port=WorkloadPort(port=ports.ENGINE),
            traffic_policy=TrafficPolicy(
                timeout=f"{settings.timeout_seconds}s",
                retry=Retry(attempts=settings.retry_attempts, retry_interval=f"{settings.retry_interval_ms}ms"),
            ),
            kv_connector=KvConnector(type=_connector(model)),
        ),
    )


def model_route(model: ModelSettings, context: Context) -> ModelRoute:
    """Requests for the model's public name, shared among the model and its route's targets."""
    shares = [(model.name, model.route.weight), *((target.model, target.weight) for target in model.route.targets)]
    targets = tuple(TargetModel(model_server_name=names.model_serving(name), weight=weight) for name, weight in shares)
    return ModelRoute(
        metadata=context.metadata(names.model_serving(model.name), "router"),
        spec=ModelRouteSpec(
            model_name=model.name,
            rules=(RouteRule(name="default", target_models=targets),),
            rate_limit=_rate_limit(model.route.rate_limit),
        ),
    )


def _connector(model: ModelSettings) -> KthenaConnector:
    """An aggregated model needs no dialogue: `http` is the plain call."""
    found = kthena_type(model.connector)
    if model.shape == "aggregated":
        return "http"
    if found is None:
        raise ValueError(f"connector {model.connector} has no Kthena router dialogue (rules/connectors.py)")
    return found


def _pd_group(model: ModelSettings) -> PdGroup | None:
    if model.shape != "pd":
        return None
    return PdGroup(
        group_key=kthena.GROUP_LABEL,
        prefill_labels={kthena.ROLE_LABEL: names.PREFILL, **_entry(model)},
        decode_labels={kthena.ROLE_LABEL: names.DECODE, **_entry(model)},
    )


def _entry(model: ModelSettings) -> dict[str, str]:
    """With engines of several pods, only the first answers requests."""
    several = any(placement.nodes > 1 for placements in model.roles().values() for placement in placements)
    return {kthena.ENTRY_LABEL: "true"} if several else {}


def _rate_limit(limit: RouteRateLimit | None) -> RateLimit | None:
    if limit is None:
        return None
    return RateLimit(
        input_tokens_per_unit=limit.input_tokens, output_tokens_per_unit=limit.output_tokens, unit=limit.unit
    )
