"""The file by which the gateway learns whose requests may not go to the channel now: an Envoy extension configuration (ECDS)."""

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

from rules.digest import canonical
from rules.envoy_keys import CLIENT_HEADER

FILTER: Final = "channel-gate"
"""The filter's name in the channel's listener; Envoy takes an ECDS resource only under the same name."""
FILTER_TYPE: Final = "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC"
FILE: Final = "channel-gate.yaml"

Reason = Literal["key-expired", "tokens-of-the-day", "spend-of-the-day"]
REASONS: Final[tuple[Reason, ...]] = get_args(Reason)


def channel_gate_file(closed: Mapping[str, Reason]) -> str:
    """The text of `channel-gate.yaml` (JSON, which is YAML); `closed` maps a client key's id to why its requests stay away."""
    resource = {
        "@type": "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig",
        "name": FILTER,
        "typed_config": gate(closed),
    }
    return canonical({"resources": [resource]}) + "\n"


def gate(closed: Mapping[str, Reason]) -> dict[str, Any]:
    """The filter: a policy of refusal for each reason, named like it."""
    clients = {reason: sorted(one for one, why in closed.items() if why == reason) for reason in REASONS}
    policies = {
        reason: {"permissions": [{"any": True}], "principals": [_client(one) for one in ids]}
        for reason, ids in clients.items()
        if ids
    }
    return {"@type": FILTER_TYPE, "rules": {"action": "DENY", "policies": policies}}


def refusal(reason: Reason) -> str:
    """What Envoy's response code details say when a policy refuses."""
    return f"rbac_access_denied_matched_policy[{reason}]"


def _client(key_id: str) -> dict[str, Any]:
    return {"header": {"name": CLIENT_HEADER, "string_match": {"exact": key_id}}}
