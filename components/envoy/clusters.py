"""Envoy clusters: the routers of each model, the hops into internal listeners, and one composite a public name."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from components.envoy import filters
from components.envoy.plan import PublicModel, Target, public_models
from components.envoy.schema import METADATA, PAUSE_HEADER, Json, extension, response_header, seconds, typed
from rules import names, ports
from settings.models import ModelSettings
from settings.settings import Settings

_PROTOCOLS: Final = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_MOST: Final = 100_000
CHANNEL_LISTENER: Final = "channel"
RENAME_LISTENER: Final = "rename"
READINESS: Final = {"native": "/readiness", "kthena": "/readyz"}
"""What a router answers 200 to while it may be asked.

vllm-router's is 200 while it has workers (its `/health` is 200 without any). Kthena's (0.4 and 1.0 alike) is 200 once it has read
its objects: it says nothing of engines, and Kthena without any is found out by its answers (lua/router_answer.lua).
"""
PAUSE_SECONDS: Final = 1
"""A dead engine is off its routers' lists within about a second (measured), and three attempts must not be over by then."""


def composite(name: str, members: Sequence[str], kthena: bool = False) -> Json:
    """One member an attempt. Retries are counted here, and the default of 3 at a time would cap the failover (envoyproxy/envoy#29762).

    Where every attempt goes to the same place, its answers ask for a pause: what failed there needs a second to be taken out.
    `kthena` says that members reach Kthena's router directly: filters of members are never run, a composite's own are.
    """
    same = len(set(members)) == 1 < len(members)
    answers = [*([_pause()] if same else []), *([_router_answer()] if kthena else [])]
    return {
        "name": name,
        "connect_timeout": "3s",
        "lb_policy": "CLUSTER_PROVIDED",
        "circuit_breakers": {"thresholds": [threshold(priority, _MOST) for priority in ("DEFAULT", "HIGH")]},
        "cluster_type": extension(
            "envoy.clusters.composite", "extensions.clusters.composite.v3.ClusterConfig",
            clusters=[{"name": member} for member in members],
        ),
        **({"typed_extension_protocol_options": _filtered(answers)} if answers else {}),
    }  # fmt: skip


def _ejection(model: ModelSettings) -> Json:
    """When a router is left out. Kthena's answers for its engines with 5xx even where a caller asked too much: only silence counts."""
    common = {"interval": "1s", "base_ejection_time": "5s", "max_ejection_percent": 100}
    if model.backend == "kthena":
        return common | {
            "split_external_local_origin_errors": True,
            "consecutive_local_origin_failure": 3,
            "enforcing_consecutive_5xx": 0,
            "enforcing_consecutive_gateway_failure": 0,
            "enforcing_success_rate": 0,
        }
    return common | {
        "consecutive_gateway_failure": 3,
        "enforcing_consecutive_gateway_failure": 100,
        "consecutive_5xx": 5,
    }


def _to_routers(model: ModelSettings) -> Json:
    if model.backend == "kthena":
        return _filtered([_router_answer()])
    return protocols(explicit_http_config={"http_protocol_options": {}})


def _filtered(answers: list[Json]) -> Json:
    codec = extension("codec", "extensions.filters.http.upstream_codec.v3.UpstreamCodec")
    return protocols(http_filters=[*answers, codec], explicit_http_config={"http_protocol_options": {}})


def _pause() -> Json:
    """Envoy's backoff begins at 0 unless the answer names a pause."""
    pause = {"append": response_header(PAUSE_HEADER, str(PAUSE_SECONDS))}
    return extension(
        "pause", "extensions.filters.http.header_mutation.v3.HeaderMutation",
        mutations={"response_mutations": [pause]},
    )  # fmt: skip


def _router_answer() -> Json:
    return filters.lua("router-answer", filters.router_answer_source())


def routers(settings: Settings, model: ModelSettings) -> Json:
    """The routers of a model in the cluster; unhealthy or failing ones are left out, and all of them means "next target".

    A router whose name is gone gets no new request, well as it looks: it is on its way out. When all names change at once, the
    new ones haven't been asked yet; where there is no next target, they are tried all the same (panic).
    """
    host, port = router_address(settings, model)
    name = f"in-{names.slug(model.name)}"
    budget = concurrency_budget(settings, model)
    first = max(1, int(budget * settings.channel.moe.expert_load_threshold))
    target = Target(place="cluster", model=model.name, longest=model.longest_request_seconds)
    interval = seconds(settings.channel.chip.health_check_interval_seconds)
    return {
        "name": name,
        "cluster_type": dns(all_addresses=True),
        "connect_timeout": "3s",
        "ignore_health_on_host_removal": True,
        "common_lb_config": {
            "healthy_panic_threshold": {"value": 0 if has_next_target(settings, model) else 1},
            "update_merge_window": "0s",
        },
        "circuit_breakers": {"thresholds": [threshold("DEFAULT", first), threshold("HIGH", _MOST)]},
        "outlier_detection": _ejection(model),
        "health_checks": [
            {
                "timeout": "3s",
                "interval": interval,
                "unhealthy_interval": "1s",
                "no_traffic_healthy_interval": interval,
                "no_traffic_interval": "1s",
                "unhealthy_threshold": 2,
                "healthy_threshold": 1,
                "http_health_check": {"path": READINESS[model.backend]},
            }
        ],
        "load_assignment": assignment(name, [endpoint(socket(host, port), {"served_by": target.served_by})]),
        "typed_extension_protocol_options": _to_routers(model),
    }


def has_next_target(settings: Settings, model: ModelSettings) -> bool:
    """Whether requests for a model's exact name may go anywhere else."""
    exact = next(public for public in public_models(settings) if public.name == model.name)
    return len({target.place for target in exact.attempts}) > 1


def hop(name: str, targets: Sequence[tuple[Target, int]], first: bool) -> Json:
    """Into the internal listener that puts the target's name of the model into the body; the endpoint says which.

    `targets` carry their load balancing weights, 1 or more.
    """
    return {
        "name": name,
        "type": "STATIC",
        "connect_timeout": "3s",
        "circuit_breakers": {"thresholds": [threshold(priority, _MOST) for priority in ("DEFAULT", "HIGH")]},
        "load_assignment": assignment(
            name, [_hop_endpoint(number, target, weight, first) for number, (target, weight) in enumerate(targets)]
        ),
        "typed_extension_protocol_options": protocols(explicit_http_config={"http2_protocol_options": {}}),
        "transport_socket": extension(
            "internal", "extensions.transport_sockets.internal_upstream.v3.InternalUpstreamTransport",
            passthrough_metadata=[{"name": METADATA, "kind": {"host": {}}}],
            transport_socket=extension("raw", "extensions.transport_sockets.raw_buffer.v3.RawBuffer"),
        ),
    }  # fmt: skip


def _hop_endpoint(number: int, target: Target, weight: int, first: bool) -> Json:
    listener = CHANNEL_LISTENER if target.place == "channel" else RENAME_LISTENER
    facts = {
        "served_by": target.served_by,
        "model": target.model,
        "cluster": target.cluster,
        "first": str(first).lower(),
        **_defaults(target),
    }
    address = {"envoy_internal_address": {"server_listener_name": listener, "endpoint_id": str(number)}}
    return {**endpoint(address, facts), "load_balancing_weight": weight}


def _defaults(target: Target) -> dict[str, str]:
    """What an alias puts into chat bodies that lack it, as JSON text."""
    if target.entry is None:
        return {}
    return {"max_tokens": str(target.entry.max_tokens), "temperature": f"{target.entry.temperature:g}"}


def members(model: PublicModel) -> list[str]:
    """The member clusters of a public name, attempt by attempt."""
    return [member(model, position) for position in range(len(model.attempts))]


def member(model: PublicModel, position: int) -> str:
    """The member cluster of one attempt: straight to the routers when the body needs no change, else by a hop."""
    target = model.attempts[position]
    if target.place == "cluster" and not model.alias:
        return target.cluster
    if target.entry is None:
        return f"to-channel-{names.slug(target.model)}"
    return f"{'first' if _held_back(model, position) else 'again'}-{names.slug(target.entry.alias)}"


def hops(models: Iterable[PublicModel]) -> list[Json]:
    """Every hop that the public names need, each once."""
    wanted = {
        member(model, position): (target, _held_back(model, position))
        for model in models
        for position, target in enumerate(model.attempts)
        if target.place == "channel" or model.alias
    }
    return [hop(name, [(target, 1)], first) for name, (target, first) in sorted(wanted.items())]


def _held_back(model: PublicModel, position: int) -> bool:
    """Whether an attempt counts against `expertLoadThreshold`: the first of an alias that has another target to turn to."""
    return model.alias and position == 0 and len(model.attempts) > 1


def router_address(settings: Settings, model: ModelSettings) -> tuple[str, int]:
    """Host and port of what stands before a model's engines."""
    if model.backend == "kthena":
        host, _, port = settings.gateway.kthena_router.rpartition(":")
        return host, int(port)
    return names.cluster_local(names.router_service(model.name), settings.cluster.namespace), ports.ROUTER


def concurrency_budget(settings: Settings, model: ModelSettings) -> int:
    """Requests that one gateway pod may have open at a model: the engines' sequences, shared by the gateways."""
    deciding = model.decode or model.serve
    sequences = model.engine.max_num_seqs * max(1, sum(role.replicas for role in deciding))
    return max(1, sequences // gateway_pods(settings))


def gateway_pods(settings: Settings) -> int:
    """Gateway pods at least: the scaler's minimum where one owns them."""
    scaling = settings.autoscaling.gateway
    return scaling.min_replicas if scaling.enabled else settings.gateway.replicas


def assignment(name: str, endpoints: list[Json]) -> Json:
    """The endpoints of a cluster, in one locality."""
    return {"cluster_name": name, "endpoints": [{"lb_endpoints": endpoints}]}


def endpoint(address: Json, facts: dict[str, str]) -> Json:
    """An endpoint with our metadata."""
    return {"endpoint": {"address": address}, "metadata": {"filter_metadata": {METADATA: facts}}}


def socket(host: str, port: int) -> Json:
    """A TCP address."""
    return {"socket_address": {"address": host, "port_value": port}}


def dns(all_addresses: bool) -> Json:
    """A cluster found by name: each address a host of its own, or the name as one host. AUTO would prefer IPv6."""
    return extension(
        "envoy.clusters.dns", "extensions.clusters.dns.v3.DnsCluster",
        dns_refresh_rate="5s",
        dns_lookup_family="V4_PREFERRED",
        all_addresses_in_single_endpoint=not all_addresses,
    )  # fmt: skip


def protocols(**choice: Any) -> Json:
    """Upstream protocol options; idle connections are closed before the other side does."""
    options = typed(_PROTOCOLS.removeprefix("envoy."), common_http_protocol_options={"idle_timeout": "50s"}, **choice)
    return {_PROTOCOLS: options}


def threshold(priority: str, requests: int, connections: int = _MOST) -> Json:
    """A circuit breaker; the retries of a member never cap a failover."""
    return {
        "priority": priority,
        "max_connections": connections,
        "max_pending_requests": requests,
        "max_requests": requests,
        "max_retries": _MOST,
    }
