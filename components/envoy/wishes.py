"""Requests that choose their target: the same question to the cluster and to the channel, and the fallback on purpose.

`moonstack-target: cluster | channel | fallback` is heeded from smoke keys and from clients whose channel key is for debugging;
from all others it is ignored, since the channel costs money.
"""

from collections.abc import Sequence
from typing import Final

from components.envoy.clusters import composite, member
from components.envoy.limits import client_matcher
from components.envoy.plan import PublicModel
from components.envoy.routes import chat_route, inside_name, route_action
from components.envoy.schema import WISH_HEADER, Json
from settings.settings import Settings

NOWHERE: Final = "nowhere"
"""A cluster without endpoints: what a model's routers look like when all are gone."""


def privileged(settings: Settings) -> list[str]:
    """Ids of the client keys that may choose a target."""
    debug = {key.id for key in settings.keys.keys if key.purpose == "debug"}
    return [key.id for key in settings.keys.keys if key.purpose == "smoke" or key.channel_key in debug]


def wish_routes(settings: Settings, models: Sequence[PublicModel]) -> list[Json]:
    """A route for each exact name, wish and kind of answer; none when nobody may choose."""
    clients = privileged(settings)
    if not clients:
        return []
    routes = []
    for model in models:
        for wish, cluster, attempts in _choices(model):
            for stream in (True, False):
                action = route_action(settings, model, attempts, stream)
                route = chat_route(model.name, stream, {"route": {**action, "cluster": cluster}})
                wished = {"name": WISH_HEADER, "string_match": {"exact": wish}}
                route["match"]["headers"] = [wished, *route["match"]["headers"], client_matcher(clients)]
                routes.append(route)
    return routes


def wish_clusters(settings: Settings, models: Sequence[PublicModel]) -> list[Json]:
    """The composites of these routes, and the empty cluster."""
    if not privileged(settings):
        return []
    outside = [(model, target) for model in models if not model.alias and (target := _outside(model))]
    nowhere = {"name": NOWHERE, "type": "STATIC", "connect_timeout": "1s"}
    composites = [
        composite(name, members)
        for model, target in outside
        for name, members in ((_only(model), [target]), (_fallback(model), [NOWHERE, target]))
    ]
    return [nowhere, *composites]


def _choices(model: PublicModel) -> list[tuple[str, str, int]]:
    """Wish, cluster and number of attempts."""
    if model.alias:
        return []
    inside = [("cluster", inside_name(model), len(model.inside()))] if model.inside() else []
    outside = [("channel", _only(model), 1), ("fallback", _fallback(model), 2)] if _outside(model) else []
    return [*inside, *outside]


def _outside(model: PublicModel) -> str | None:
    places = [position for position, target in enumerate(model.attempts) if target.place == "channel"]
    return member(model, places[0]) if places else None


def _only(model: PublicModel) -> str:
    return f"only-channel-{model.slug}"


def _fallback(model: PublicModel) -> str:
    return f"fallback-{model.slug}"
