"""The gateway's configuration files, and the one static configuration by which they are checked."""

from copy import deepcopy
from typing import Any, Final

import yaml

from components.envoy import bootstrap, channel, limits, listeners, moe, plan, routes, wishes
from components.envoy.clusters import hops, routers
from components.envoy.schema import Json, Pod, response_header
from rules import channel_gate
from rules.digest import short
from rules.envoy_keys import FILTER, FILTER_TYPE
from rules.names import CONFIG_HEADER
from settings.settings import Settings

BOOTSTRAP: Final = "bootstrap.yaml"
LISTENERS: Final = "listeners.yaml"
ROUTES: Final = "routes.yaml"
_RESTARTS: Final = (BOOTSTRAP, LISTENERS)
"""Files whose change needs new pods; all others are taken up by running ones."""


def gateway_files(settings: Settings, pod: Pod | None = None) -> dict[str, str]:
    """File name → YAML text of the gateway's ConfigMap. No key is in it."""
    where = pod or Pod()
    resources = _resources(settings, where)
    resources[ROUTES][0]["response_headers_to_add"] = [response_header(CONFIG_HEADER, config_digest(settings, where))]
    return {
        BOOTSTRAP: _text(bootstrap.dynamic(settings, where)),
        **{name: _text({"resources": items}) for name, items in resources.items()},
    }


def config_digest(settings: Settings, pod: Pod | None = None) -> str:
    """What a gateway says in every answer once it has taken up all files of these settings."""
    return short(_resources(settings, pod or Pod()))


def _resources(settings: Settings, where: Pod) -> dict[str, list[Json]]:
    models = plan.public_models(settings)
    resources: dict[str, list[Json]] = {
        LISTENERS: [_as("config.listener.v3.Listener", item) for item in listeners.listeners(settings, where)],
        "clusters.yaml": [_as("config.cluster.v3.Cluster", item) for item in _clusters(settings, where, models)],
        ROUTES: [_routes(settings, models)],
        "limits.yaml": [limits.client_limits(settings)],
    }
    if settings.gateway.tls.source != "none":
        resources[listeners.CERTIFICATE_FILE] = [listeners.certificate(where)]
    if settings.channel.enabled:
        resources |= {channel.key_file(key): [channel.key_secret(key, where)] for key in channel.keys_in_use(settings)}
    return resources


def restart_digest(files: dict[str, str]) -> str:
    """Changes only when pods must be replaced: models, keys and limits reach running pods."""
    return short({name: files[name] for name in _RESTARTS})


def static_configuration(settings: Settings, pod: Pod | None = None) -> str:
    """All files inlined, for `envoy --mode validate`: it refuses what Envoy would only warn about when read later."""
    where = pod or Pod()
    models = plan.public_models(settings)
    inlined = [_inline(item, settings, models) for item in deepcopy(listeners.listeners(settings, where))]
    return _text(bootstrap.static(settings, where, inlined, _clusters(settings, where, models)))


def _routes(settings: Settings, models: list[plan.PublicModel]) -> Json:
    group = moe.group_routes(settings, models)
    named = [item for model in models for item in routes.model_routes(settings, model, moe.measured(settings, model))]
    return routes.route_configuration(
        models,
        [*wishes.wish_routes(settings, models), *named, *group],
        settings.channel_models.group if group else None,
    )


def _clusters(settings: Settings, pod: Pod, models: list[plan.PublicModel]) -> list[Json]:
    return [
        bootstrap.admin_cluster(pod),
        *(routers(settings, model) for model in settings.models),
        *([channel.cluster(settings, pod), *channel.proxy_cluster(settings)] if settings.channel.enabled else []),
        *hops(models),
        *routes.composites(settings, models),
        *moe.group_clusters(settings, models),
        *wishes.wish_clusters(settings, models),
    ]


def _inline(listener: Json, settings: Settings, models: list[plan.PublicModel]) -> Json:
    replaced: dict[str, Any] = {
        FILTER: {"@type": FILTER_TYPE, "credentials": [], "key_sources": [{"header": "authorization"}]},
        limits.FILTER: limits.client_limits(settings)["typed_config"],
        channel_gate.FILTER: channel_gate.gate({}),
    }
    for chain in listener["filter_chains"]:
        chain.pop("transport_socket", None)
        manager = chain["filters"][0]["typed_config"]
        if "http_filters" not in manager:
            continue
        if manager.pop("rds", None):
            table = dict(_routes(settings, models))
            table.pop("@type")
            manager["route_config"] = table
        for http_filter in manager["http_filters"]:
            if http_filter.pop("config_discovery", None):
                http_filter["typed_config"] = replaced[http_filter["name"]]
            if credential := http_filter["typed_config"].get("credential"):
                credential["typed_config"]["credential"] = {"name": bootstrap.ANY_SECRET}
    return listener


def _as(kind: str, item: Json) -> Json:
    return {"@type": f"type.googleapis.com/envoy.{kind}", **item}


def _text(document: Json) -> str:
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


class _Dumper(yaml.CSafeDumper):
    """Lua as readable blocks, and no anchors: a shared object is written out each time."""

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True


def _string(dumper: yaml.CSafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _string)
