"""Each setting of the gateway and the channel changes the field of Envoy's configuration that it stands for."""

from functools import cache
from typing import Any

import pytest
import yaml

from components.envoy.files import gateway_files
from components.envoy.process import arguments
from components.envoy.service_config import config_toml, settings_json
from settings.settings import Settings
from tests.envoy.stacks import CLIENTS, MODEL, stack

GATEWAY = "gateway"
CHANNEL = "channel"


def built(group: str, key: str, value: Any) -> Settings:
    *parents, last = key.split(".")
    settings: dict[str, Any] = {last: value}
    for parent in reversed(parents):
        settings = {parent: settings}
    channel = settings if group == CHANNEL else {}
    return stack(gateway=settings if group == GATEWAY else None, channel=channel)


def resources(settings: Settings, file: str) -> dict[str, Any]:
    return {item["name"]: item for item in yaml.load(files(settings)[file], yaml.CSafeLoader)["resources"]}


_FILES: dict[int, tuple[Settings, dict[str, str]]] = {}


def files(settings: Settings) -> dict[str, str]:
    """The gateway's files, made once for each object of settings, which is kept so that its id stays its own."""
    kept = _FILES.get(id(settings))
    if kept is None:
        kept = _FILES[id(settings)] = (settings, gateway_files(settings))
    return kept[1]


@cache
def plain(daily_requests: bool = False) -> Settings:
    """The stack without the change that a case makes."""
    return stack(channel={"dailyRequests": 1} if daily_requests else {})


def manager(settings: Settings, listener: str) -> dict[str, Any]:
    return resources(settings, "listeners.yaml")[listener]["filter_chains"][0]["filters"][0]["typed_config"]


def http_filter(settings: Settings, listener: str, name: str) -> dict[str, Any]:
    filters = manager(settings, listener)["http_filters"]
    return next(item for item in filters if item["name"] == name)["typed_config"]


def cluster(settings: Settings, name: str) -> dict[str, Any]:
    return resources(settings, "clusters.yaml")[name]


def chat_route(settings: Settings, stream: str = "true") -> dict[str, Any]:
    host = resources(settings, "routes.yaml")["public"]["virtual_hosts"][0]
    wanted = [{"exact": "chat"}, {"exact": stream}]
    return next(
        route["route"]
        for route in host["routes"]
        if [header.get("string_match") for header in route["match"].get("headers", [])][1:] == wanted
    )


def inner_route(settings: Settings, stream: bool) -> dict[str, Any]:
    routes = manager(settings, "channel")["route_config"]["virtual_hosts"][0]["routes"]
    return routes[0 if stream else 1]["route"]


def channel_address(settings: Settings) -> dict[str, Any]:
    return cluster(settings, "channel")["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]["address"][
        "socket_address"
    ]


def breakers(settings: Settings, kind: str, field: str) -> dict[str, int]:
    return {limit["priority"]: limit[field] for limit in cluster(settings, "channel")["circuit_breakers"][kind]}


def bucket(settings: Settings, name: str) -> dict[str, Any]:
    return http_filter(settings, "channel", name)["token_bucket"]


CASES = [
    (GATEWAY, "httpPort", 9191, lambda s: resources(s, "listeners.yaml")["http"]["address"]["socket_address"]["port_value"], 9191),
    (GATEWAY, "grpcPort", 50055, lambda s: resources(s, "listeners.yaml")["grpc"]["address"]["socket_address"]["port_value"], 50055),
    (GATEWAY, "maxConcurrentStreams", 7, lambda s: manager(s, "grpc")["http2_protocol_options"]["max_concurrent_streams"], 7),
    (GATEWAY, "streamTimeoutSeconds", 9, lambda s: manager(s, "http")["request_timeout"], "9s"),
    (GATEWAY, "streamTimeoutSeconds", 9, lambda s: manager(s, "http")["stream_idle_timeout"], "9s"),
    (GATEWAY, "maxBodyBytes", 5000, lambda s: http_filter(s, "http", "body-size")["max_request_bytes"], 5000),
    (GATEWAY, "maxAnswerBytes", 5000000, lambda s: resources(s, "listeners.yaml")["http"]["per_connection_buffer_limit_bytes"], 5000000),
    (GATEWAY, "firstByteSeconds", 31, lambda s: chat_route(s)["retry_policy"]["per_try_idle_timeout"], "31s"),
    (GATEWAY, "clientIdleSeconds", 61, lambda s: manager(s, "http")["common_http_protocol_options"]["idle_timeout"], "61s"),
    (GATEWAY, "trustedHops", 2, lambda s: manager(s, "http")["xff_num_trusted_hops"], 2),
    (GATEWAY, "limits.headerKilobytes", 16, lambda s: manager(s, "http")["max_request_headers_kb"], 16),
    (GATEWAY, "limits.headerCount", 20, lambda s: manager(s, "http")["common_http_protocol_options"]["max_headers_count"], 20),
    (GATEWAY, "limits.headerSeconds", 4, lambda s: manager(s, "http")["request_headers_timeout"], "4s"),
    (CHANNEL, "baseUrl", "https://a.example:8443/x", lambda s: channel_address(s), {"address": "a.example", "port_value": 8443}),
    (CHANNEL, "baseUrl", "https://a.example/x/y", lambda s: inner_route(s, True)["prefix_rewrite"], "/x/y/"),
    (CHANNEL, "baseUrl", "https://a.example", lambda s: inner_route(s, True)["host_rewrite_literal"], "a.example"),
    (CHANNEL, "connectTimeoutMs", 1500, lambda s: cluster(s, "channel")["connect_timeout"], "1.5s"),
    (CHANNEL, "readTimeoutMs", 7000, lambda s: inner_route(s, True)["idle_timeout"], "7s"),
    (CHANNEL, "longestRequestSeconds", 77, lambda s: inner_route(s, False)["idle_timeout"], "77s"),
    (CHANNEL, "longestRequestSeconds", 777, lambda s: arguments(s, "x")[arguments(s, "x").index("--drain-time-s") + 1], "782"),
    (CHANNEL, "maxIdleConns", 12, lambda s: breakers(s, "thresholds", "max_connections"), {"DEFAULT": 12, "HIGH": 12}),
    (CHANNEL, "maxIdleConnsPerHost", 5, lambda s: breakers(s, "per_host_thresholds", "max_connections"), {"DEFAULT": 5, "HIGH": 5}),
    (CHANNEL, "maxConcurrent", 40, lambda s: breakers(s, "thresholds", "max_requests"), {"DEFAULT": 34, "HIGH": 40}),
    (CHANNEL, "retry.maxAttempts", 6, lambda s: chat_route(s)["retry_policy"]["num_retries"], 5),
    (CHANNEL, "retry.backoffBaseMs", 100, lambda s: chat_route(s)["retry_policy"]["retry_back_off"]["base_interval"], "0.1s"),
    (CHANNEL, "retry.backoffMaxMs", 900, lambda s: chat_route(s)["retry_policy"]["retry_back_off"]["max_interval"], "0.9s"),
    (CHANNEL, "retry.retryOnStatus", [502], lambda s: chat_route(s)["retry_policy"]["retriable_status_codes"], [502]),
    (CHANNEL, "ratelimit.qpsPerPod", 100, lambda s: bucket(s, "channel-rate")["tokens_per_fill"], 100),
    (CHANNEL, "ratelimit.burst", 300, lambda s: bucket(s, "channel-rate")["max_tokens"], 300),
    (CHANNEL, "dailyRequests", 50, lambda s: bucket(s, "channel-cap")["max_tokens"], 50),
    (CHANNEL, "moe.expertLoadThreshold", 0.5, lambda s: cluster(s, "channel")["circuit_breakers"]["thresholds"][0]["max_requests"], 512),
    (CHANNEL, "chip.healthCheckIntervalSeconds", 4, lambda s: cluster(s, "in-chat")["health_checks"][0]["interval"], "4s"),
    (CHANNEL, "apiKeyEnv", "OTHER_KEY", lambda s: config_toml(s)["channel"]["api_key_env"], "OTHER_KEY"),
    (CHANNEL, "provider", "other", lambda s: settings_json(s)["provider"], "other"),
]  # fmt: skip


@pytest.mark.parametrize(("group", "key", "value", "field", "expected"), CASES, ids=[f"{c[0]}.{c[1]}" for c in CASES])
def test_the_field_follows_the_setting(group: str, key: str, value: Any, field: Any, expected: Any):
    assert field(built(group, key, value)) == expected
    assert field(plain(key == "dailyRequests")) != expected


def test_every_composite_has_one_member_an_attempt_and_never_caps_its_retries():
    settings = plain()
    models = resources(settings, "clusters.yaml")
    composites = {name: item for name, item in models.items() if item.get("lb_policy") == "CLUSTER_PROVIDED"}
    assert len(composites["model-chat"]["cluster_type"]["typed_config"]["clusters"]) == 3
    assert len(composites["model-moe-expert-a"]["cluster_type"]["typed_config"]["clusters"]) == 4
    for item in composites.values():
        assert {limit["max_retries"] for limit in item["circuit_breakers"]["thresholds"]} == {100_000}


def test_an_aliass_members_follow_the_declared_order_whatever_it_is():
    order = ["moe-expert-d", "moe-expert-b", "moe-expert-c"]
    settings = stack(channel={}, channelModels={"fallback": {"order": order}})
    members = cluster(settings, "model-moe-expert-a")["cluster_type"]["typed_config"]["clusters"]
    assert [item["name"] for item in members] == ["first-moe-expert-a", *(f"again-{name}" for name in order)]


def test_all_aliases_are_reached_by_the_groups_name_whatever_it_is():
    settings = stack(channel={}, channelModels={"group": "experts"})
    routes = resources(settings, "routes.yaml")["public"]["virtual_hosts"][0]["routes"]
    asked = [
        header["string_match"].get("exact")
        for route in routes
        for header in route["match"].get("headers", [])[1:2]
        if "string_match" in header
    ]
    assert "experts" in asked and "moe" not in asked


def test_the_channels_version_and_the_interval_of_exports_are_written_as_declared():
    settings = stack(channel={}, channelModels={"channelVersion": "v9", "observability": {"exportIntervalSeconds": 7}})
    assert settings_json(settings)["channel_version"] == "v9"
    assert yaml.load(files(settings)["bootstrap.yaml"], yaml.CSafeLoader)["stats_flush_interval"] == "7s"


def test_a_router_that_turns_well_is_used_at_once_and_not_a_second_later():
    """By default Envoy gathers such changes for a second, in which a rollout's traffic would all be the channel's."""
    assert cluster(plain(), "in-chat")["common_lb_config"]["update_merge_window"] == "0s"


def test_each_member_of_a_composite_is_a_cluster_that_exists():
    clusters = resources(plain(), "clusters.yaml")
    for item in clusters.values():
        for member in item.get("cluster_type", {}).get("typed_config", {}).get("clusters", []):
            assert member["name"] in clusters


def test_each_route_leads_to_a_cluster_that_exists():
    keys = (*CLIENTS, {"id": "smoke", "purpose": "smoke", "owner": "smoke"})
    settings = stack(channel={}, keys=keys)
    clusters = resources(settings, "clusters.yaml")
    for route in resources(settings, "routes.yaml")["public"]["virtual_hosts"][0]["routes"]:
        action = route.get("route", {})
        weighted = action.get("weighted_clusters", {}).get("clusters", [])
        for name in [*([action["cluster"]] if "cluster" in action else []), *(item["name"] for item in weighted)]:
            assert name in clusters


def test_hops_of_the_cluster_and_the_channel_never_share_a_listener():
    keys = {**MODEL, "name": "MiniMax-M2.5"}
    clusters = resources(stack(channel={}, models=(keys,)), "clusters.yaml")
    for item in clusters.values():
        for endpoint in item.get("load_assignment", {}).get("endpoints", [{}])[0].get("lb_endpoints", []):
            internal = endpoint["endpoint"]["address"].get("envoy_internal_address")
            if internal:
                facts = endpoint["metadata"]["filter_metadata"]["moonstack"]
                inside = facts["served_by"].startswith("cluster/")
                assert internal["server_listener_name"] == ("rename" if inside else "channel")


def test_limits_are_written_for_the_keys_that_have_one():
    settings = stack(keys=({**CLIENTS[0], "qps": 5}, CLIENTS[1]))
    descriptors = resources(settings, "limits.yaml")["client-limits"]["typed_config"]["descriptors"]
    assert [(d["entries"][0]["value"], d["token_bucket"]["max_tokens"]) for d in descriptors] == [("client", 10)]


def test_tls_starts_at_1_2_on_both_sides():
    settings = stack(channel={}, gateway={"tls": {"source": "secret"}})
    chain = resources(settings, "listeners.yaml")["http"]["filter_chains"][0]
    for secured in (chain, cluster(settings, "channel")):
        context = secured["transport_socket"]["typed_config"]["common_tls_context"]
        assert context["tls_params"] == {"tls_minimum_protocol_version": "TLSv1_2"}


def test_the_port_in_clear_text_is_never_the_exposed_one():
    settings = stack(gateway={"tls": {"source": "secret"}})
    secured = {
        name: "transport_socket" in item["filter_chains"][0]
        for name, item in resources(settings, "listeners.yaml").items()
    }
    assert secured["http"] and not secured["grpc"]


@pytest.mark.parametrize(("backend", "path"), [("native", "/readiness"), ("kthena", "/readyz")])
def test_routers_are_asked_whether_they_are_ready_where_their_kind_says_so(backend: str, path: str):
    check = cluster(stack(models=({**MODEL, "backend": backend},)), "in-chat")["health_checks"][0]
    assert check["http_health_check"] == {"path": path}
