"""The door: reachability, keys, answers, the channel behind it, and what Envoy says of itself."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from smoke.doctor.diagnosis import Diagnosis, Hit
from smoke.doctor.facts import Facts
from smoke.errors import TemporaryError
from smoke.probes.routing import declared_names

CHANNEL_CLUSTER: Final = "channel"
CHANNEL_SHARE: Final = 0.3
"""More than this share of all requests' time spent in the channel: the bottleneck is outside (A11)."""
CHANNEL_LIMITED_SHARE: Final = 0.05
"""More than this share of the channel's answers being 429: its quota is too small for what is sent."""
EXPIRY_NOTICE: Final = timedelta(days=14)


def total(facts: Facts, name: str, **wanted: str) -> float:
    """Sum of a metric's samples with these labels, over all gateway pods."""
    return sum(
        sample.value
        for sample in facts.gateway
        if sample.name == name and all(sample.labels.get(key) == value for key, value in wanted.items())
    )


def unreachable(facts: Facts) -> Iterator[Hit]:
    """No answer at all."""
    if facts.door and facts.door.error and facts.door.status is None:
        temporary = isinstance(facts.door.error, TemporaryError)
        yield Hit("gateway", facts.door.error.cause + ("" if temporary else " (trying again changes nothing)"))


def no_answer(facts: Facts) -> Iterator[Hit]:
    """The gateway answers, the model does not."""
    if facts.door and facts.door.status and facts.door.status >= 500:
        model = facts.settings.models[0].name if facts.settings.models else ""
        yield Hit(f"model/{model}", f"a chat was answered with {facts.door.status}")


def key_refused(facts: Facts) -> Iterator[Hit]:
    """401 with the smoke key."""
    if facts.door and facts.door.status == 401:
        yield Hit("key/smoke", "the gateway answers 401 to the declared smoke key")


def key_expired(facts: Facts) -> Iterator[Hit]:
    """Past its date."""
    for key in facts.settings.keys.keys:
        if key.expires and key.expires <= facts.now:
            yield Hit(f"key/{key.id}", f"expired on {key.expires:%Y-%m-%d %H:%M}")


def key_expires_soon(facts: Facts) -> Iterator[Hit]:
    """Within two weeks."""
    for key in facts.settings.keys.keys:
        if key.expires and facts.now < key.expires <= facts.now + EXPIRY_NOTICE:
            yield Hit(f"key/{key.id}", f"expires on {key.expires:%Y-%m-%d %H:%M}")


def unparsable(facts: Facts) -> Iterator[Hit]:
    """200 with something that is no answer."""
    if facts.door and facts.door.status == 200 and not facts.door.parsed:
        yield Hit("gateway", facts.door.error.cause if facts.door.error else "")


def names_differ(facts: Facts) -> Iterator[Hit]:
    """A name must match letter by letter (A10)."""
    if not facts.door or not facts.door.models:
        return
    for name in sorted(declared_names(facts.settings) - facts.door.models):
        alike = [
            other for other in facts.door.models if other.lower().replace("_", "-") == name.lower().replace("_", "-")
        ]
        yield Hit(f"model/{name}", f"not listed{'; alike: ' + ', '.join(alike) if alike else ''}")


def channel_unreachable(facts: Facts) -> Iterator[Hit]:
    """Connections to the channel fail: base URL, egress policy on 443, or DNS."""
    failed = total(facts, "envoy_cluster_upstream_cx_connect_fail", envoy_cluster_name=CHANNEL_CLUSTER)
    resolved = total(facts, "envoy_cluster_membership_total", envoy_cluster_name=CHANNEL_CLUSTER)
    made = total(facts, "envoy_cluster_upstream_cx_total", envoy_cluster_name=CHANNEL_CLUSTER)
    if not facts.settings.channel.enabled or not facts.gateway:
        return
    if resolved == 0:
        yield Hit("channel", f"the name {facts.settings.channel.base_url.host} does not resolve in the gateway's pods")
    elif failed and failed >= made / 2:
        yield Hit("channel", f"{failed:.0f} of {made:.0f} connections to {facts.settings.channel.base_url} failed")


def _channel_answers(facts: Facts) -> dict[str, float]:
    """Status → the channel's answers with it, each attempt counted, since the gateway's pods began."""
    found: dict[str, float] = {}
    for sample in facts.gateway:
        if sample.name == "envoy_cluster_upstream_rq" and sample.labels.get("envoy_cluster_name") == CHANNEL_CLUSTER:
            code = sample.labels.get("envoy_response_code", "")
            found[code] = found.get(code, 0) + sample.value
    return found


def _answered(facts: Facts, least: float, *codes: str) -> Iterator[Hit]:
    """Statuses that are more than this share of all answers."""
    answers = _channel_answers(facts)
    count, of = sum(answers.get(code, 0) for code in codes), sum(answers.values())
    if count > least * of:
        yield Hit(
            "channel", f"{count:.0f} of {of:.0f} answers were {' or '.join(codes)} since the gateway's pods began"
        )


def channel_refuses_key(facts: Facts) -> Iterator[Hit]:
    """The channel answers 401 or 403: no retry helps, and every fallback fails (B10, C8)."""
    yield from _answered(facts, 0, "401", "403")


def channel_lacks_model(facts: Facts) -> Iterator[Hit]:
    """404 of the channel: a name that it does not serve, or a wrong base path (A10, A12)."""
    yield from _answered(facts, 0, "404")


def channel_limits(facts: Facts) -> Iterator[Hit]:
    """A storm of 429, not one now and then (A12)."""
    yield from _answered(facts, CHANNEL_LIMITED_SHARE, "429")


def channel_is_slow(facts: Facts) -> Iterator[Hit]:
    """The bottleneck is outside."""
    outside = total(facts, "envoy_cluster_upstream_rq_time_sum", envoy_cluster_name=CHANNEL_CLUSTER)
    inside = total(facts, "envoy_http_downstream_rq_time_sum", envoy_http_conn_manager_prefix="gateway")
    if inside and outside / inside > CHANNEL_SHARE:
        yield Hit(
            "channel", f"{outside / inside:.0%} of all requests' time is spent there, more than {CHANNEL_SHARE:.0%}"
        )


def configuration_rejected(facts: Facts) -> Iterator[Hit]:
    """Envoy keeps the last good one, and says so only in its metrics (G4)."""
    for sample in facts.gateway:
        if sample.name.endswith("update_rejected") and sample.value > 0:
            yield Hit("gateway", f"{sample.name} is {sample.value:.0f}")


def retries_overflow(facts: Facts) -> Iterator[Hit]:
    """Retries that were wanted and not made (envoyproxy/envoy#29762)."""
    if (count := total(facts, "envoy_cluster_upstream_rq_retry_overflow")) > 0:
        yield Hit("gateway", f"{count:.0f} retries were not made")


CATALOGUE: Final = (
    Diagnosis(
        id="gateway-unreachable", title="Connection refused, or the local proxy fails", severity="error",
        cause="no answer comes from the gateway's address",
        fix="check smoke.endpoint and HTTPS_PROXY/NO_PROXY here; in the cluster the Service, its endpoints and egress on 443",
        look="kubectl -n NS get svc,endpointslices -l app.kubernetes.io/name=gateway", source="requirement B10", detect=unreachable,
    ),
    Diagnosis(
        id="model-unavailable", title="5xx: no engine answers", severity="error",
        cause="the router has no Ready prefill or no Ready decode engine, or they answer with an error",
        fix="look at the findings on pods below; an engine that loads its weights becomes Ready by itself",
        look="kubectl -n NS get pods -L moonstack.dev/role,moonstack.dev/routed", source="vllm-project/router#140", detect=no_answer,
    ),
    Diagnosis(
        id="key-refused", title="401 with a declared key", severity="error",
        cause="the key is missing, malformed or disabled at the gateway, or its stored value carries its own 'Bearer '",
        fix="compare fingerprints (python -m policies audit --stack STACK), store the bare value, pulumi up",
        look="pulumi stack output keys --json", source="requirement A12, B10", detect=key_refused,
    ),
    Diagnosis(
        id="key-expired", title="A key has expired", severity="error", cause="the key's date has passed",
        fix="write the next version's end at moonstack:keys.keys[].expires, then make rotate STACK=… ID=…",
        look="pulumi stack output keys --json", source="requirement B10, C8", detect=key_expired,
    ),
    Diagnosis(
        id="key-expires-soon", title="A key expires within two weeks", severity="warning", cause="the key's date is near",
        fix="write the next version's end at moonstack:keys.keys[].expires, then make rotate STACK=… ID=…",
        look="pulumi stack output keys --json", source="requirement C8", detect=key_expires_soon,
    ),
    Diagnosis(
        id="answer-unparsable", title="Choices or event stream can't be parsed", severity="error",
        cause="something else than an OpenAI-compatible server answers, or a proxy changes the answer",
        fix="compare with a request to the router inside the cluster; look for a proxy in front that buffers or rewrites",
        look="curl -i the endpoint's /v1/chat/completions", source="requirement B10", detect=unparsable,
    ),
    Diagnosis(
        id="model-names-differ", title="A declared model is not listed", severity="error",
        cause="the name differs from the list in case, hyphens or version",
        fix="write the name exactly as /v1/models lists it, then pulumi up", look="GET /v1/models with a key",
        source="requirement A10", detect=names_differ,
    ),
    Diagnosis(
        id="channel-unreachable", title="The external channel can't be reached", severity="error",
        cause="the gateway's pods can't connect to the channel: wrong base URL, egress policy on 443, a proxy, or DNS",
        fix="check channel.baseUrl; allow egress on 443 to public addresses (NetworkPolicy of the gateway); check CoreDNS",
        look="kubectl -n NS get networkpolicy; kubectl -n kube-system get pods -l k8s-app=kube-dns",
        source="requirement B10", detect=channel_unreachable,
    ),
    Diagnosis(
        id="channel-key-refused", title="The external channel refuses our key", severity="error",
        cause="the channel's key or token has expired, is disabled or malformed, or carries its own 'Bearer '",
        fix="make rotate STACK=… ID=… with a new value of the channel's provider (an expired OAuth token is renewed there), "
        "bare, without 'Bearer '",
        look="kubectl -n NS logs -l app.kubernetes.io/name=gateway --tail=50", source="requirement B10, C8",
        detect=channel_refuses_key,
    ),
    Diagnosis(
        id="channel-model-unknown", title="The external channel does not know a model", severity="error",
        cause="a modelName differs from the channel's list in case, hyphens or version, or channel.baseUrl has a wrong path",
        fix="compare channelModels.models[].modelName with the channel's own /v1/models; python -m smoke run --classes paid names it",
        look="kubectl -n NS logs -l app.kubernetes.io/name=gateway --tail=50", source="requirement A10, A12",
        detect=channel_lacks_model,
    ),
    Diagnosis(
        id="channel-exhausted", title="The external channel answers 429", severity="warning",
        cause="what the gateways send outside is more than the channel's quota",
        fix="lower channel.ratelimit.qpsPerPod or raise the contract and channel.quotaQps; see who falls back and why",
        look="kubectl get --raw /api/v1/namespaces/NS/pods/NAME:9102/proxy/stats/prometheus",
        source="requirement A8, A12", detect=channel_limits,
    ),
    Diagnosis(
        id="channel-slow", title="The bottleneck is outside", severity="warning",
        cause="the external channel takes the largest part of the requests' time, so more pods here change nothing",
        fix="see the channel's own latency and quota; shift weight to models served here",
        look="kubectl get --raw /api/v1/namespaces/NS/pods/NAME:9102/proxy/stats/prometheus",
        source="requirement A11", detect=channel_is_slow,
    ),
    Diagnosis(
        id="gateway-config-rejected", title="Envoy rejected a configuration", severity="error",
        cause="the gateway keeps its last good configuration, so a change is not in force",
        fix="kubectl -n NS logs deploy/gateway | grep rejected; then pulumi up",
        look="kubectl get --raw /api/v1/namespaces/NS/pods/NAME:9102/proxy/stats/prometheus",
        source="Envoy xDS documentation", detect=configuration_rejected,
    ),
    Diagnosis(
        id="gateway-retries-overflow", title="Retries are not made", severity="warning",
        cause="more requests fail at once than the gateway may retry in parallel",
        fix="see why the backend fails; the budget is max_retries of the composite cluster",
        look="kubectl get --raw /api/v1/namespaces/NS/pods/NAME:9102/proxy/stats/prometheus",
        source="envoyproxy/envoy#29762", detect=retries_overflow,
    ),
)  # fmt: skip
