"""A program of its own that takes Moonstack's components as a library: keys, store, one model, gateway; and its own application."""

from dataclasses import replace

import pulumi
import pulumi_kubernetes as kubernetes

from components.api_keys import ApiKeys, ApiKeysArgs
from components.context import Context
from components.gateway import Gateway, GatewayArgs
from components.key_source import KeyVersion
from components.kv_store import KvStore, KvStoreArgs
from components.namespace import Namespace
from components.priorities import Priorities
from components.serving import serve
from components.serving_plan import engine_plans, pod_security_level
from rules import names
from rules.fingerprint import fingerprint
from settings.errors import SettingsError
from settings.settings import Settings
from settings.sharing import store_protocols


def main(config: pulumi.Config) -> str:
    """Declare the platform; returns the address that its application calls."""
    settings = Settings.from_mapping(config.require_object("serving"), source=f"{config.name}:serving")
    context = Context(
        stack=pulumi.get_stack(),
        environment=settings.environment,
        namespace=settings.cluster.namespace,
        provider=kubernetes.Provider("cluster", cluster_identifier=settings.cluster.identifier),
        images=settings.cluster.images if isinstance(settings.cluster.images, dict) else {},
    )
    plans = engine_plans(settings, context.images, None, context.stack)
    namespace = Namespace(context.namespace, pod_security_level(plans), context)
    context = replace(context, namespace_object=namespace.resources.namespace)
    keys = ApiKeys("keys", ApiKeysArgs.of(settings, (client_key(config),)), context)
    stores = [
        KvStore(f"kv-store-{protocol}", KvStoreArgs.of(settings, protocol), context)
        for protocol in store_protocols(settings)
    ]
    placed = pulumi.ResourceOptions(depends_on=[*stores, Priorities("priorities", context)])
    model = serve(settings.models[0], plans, settings, context, placed)
    gateway = Gateway(
        "gateway", GatewayArgs(settings=settings), context, pulumi.ResourceOptions(depends_on=[keys, model])
    )
    address = f"http://{names.cluster_local(names.GATEWAY, context.namespace)}:{settings.gateway.http_port}"
    kubernetes.core.v1.ConfigMap(
        "application",
        metadata={"name": "application", "namespace": context.namespace},
        data={"OPENAI_BASE_URL": f"{address}/v1"},
        opts=pulumi.ResourceOptions(provider=context.provider, depends_on=[gateway]),
    )
    return address


def client_key(config: pulumi.Config) -> KeyVersion:
    """The application's key: this program keeps its keys itself, where a stack of Moonstack has `keys.source` and keys.lock.json."""
    value = config.require("clientKey")
    return KeyVersion(id="chat-app", stage="current", value=pulumi.Output.secret(value), fingerprint=fingerprint(value))


try:
    pulumi.export("address", main(pulumi.Config()))
except SettingsError as error:
    raise pulumi.RunError(str(error)) from None
