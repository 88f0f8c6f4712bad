"""One stack of Moonstack: settings → components → outputs."""

import asyncio
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components.api_keys import ApiKeys, ApiKeysArgs
from components.context import Context
from components.deployed_content import DeployedContent
from components.elasticity import elasticity
from components.envoy.files import config_digest
from components.envoy.process import longest_request
from components.gateway import Gateway, GatewayArgs, local_certificate
from components.key_agent import KeyAgent
from components.key_source import OFFLINE, key_versions
from components.kv_store import KvStore, KvStoreArgs
from components.namespace import Namespace
from components.network_boundary import NetworkBoundary
from components.node_pool import NodePool
from components.pre_pull import PrePull, PrePullArgs
from components.priorities import Priorities
from components.release import release_digest
from components.serving import serve
from components.serving_plan import engine_plans, pod_security_level
from components.smoke_gate import SmokeGate, SmokeGateArgs
from policies.audit.gate import with_clean_state
from rules.serving_replicas import Running
from rules.timing import router_grace_seconds
from settings.capacity_plan import costs
from settings.errors import SettingsError
from settings.local_runtime import LocalRuntime
from settings.settings import NAMESPACE, Settings
from settings.sharing import store_protocols
from smoke import kthena
from smoke.errors import SmokeError
from smoke.gate import prove


def main(settings: Settings, stack: str) -> Mapping[str, Any]:
    """Declare the stack; returns its outputs."""
    runtime = LocalRuntime.load() if settings.needs_local_runtime else None
    versions = key_versions(settings, pulumi.Config(NAMESPACE))
    context = context_of(settings, stack, runtime)
    plans = engine_plans(settings, context.images, runtime, stack)

    longest_grace = router_grace_seconds(longest_request(settings))
    namespace = Namespace(context.namespace, pod_security_level(plans), context, grace=longest_grace)
    context = replace(context, namespace_object=namespace.resources.namespace)
    keys = ApiKeys("keys", ApiKeysArgs.of(settings, versions), context)
    if settings.keys.agent:
        KeyAgent("key-agent", keys.agent_config, context, pulumi.ResourceOptions(depends_on=[keys]))
    pools = [NodePool(pool.name, pool, context) for pool in settings.node_pools]
    stores = [
        KvStore(f"kv-store-{protocol}", KvStoreArgs.of(settings, protocol), context)
        for protocol in store_protocols(settings)
    ]
    priorities = Priorities("priorities", context)
    placed = pulumi.ResourceOptions(depends_on=[priorities, *pools, *stores])
    running = running_servings(settings)
    models = [serve(model, plans, settings, context, placed, running) for model in settings.models]
    if any(model.pre_pull for model in settings.models):
        PrePull("pre-pull", PrePullArgs(engines=plans), context)
    gateway = Gateway(
        "gateway",
        GatewayArgs(settings=settings, certificate=local_certificate(settings)),
        context,
        pulumi.ResourceOptions(depends_on=[keys]),
    )
    scaled = elasticity(settings, plans, context, pulumi.ResourceOptions(depends_on=[gateway, *models]))
    boundary = NetworkBoundary("boundary", settings, context)
    whole = [gateway, boundary, *models, *scaled]
    content = DeployedContent("content", settings, context, pulumi.ResourceOptions(depends_on=whole))
    release = release_digest(context)
    if settings.smoke.gate:
        args = SmokeGateArgs(
            release=release,
            prove=with_clean_state(partial(prove, settings, stack, config_digest(settings)), settings, stack),
            after=[*whole, content],
            skip=settings.smoke_skip,
            nonce=settings.smoke.nonce,
        )
        SmokeGate("smoke", args, context)
    return {
        "endpoint": settings.smoke.base_url or "",
        "models": [model.name for model in settings.models],
        "keys": keys.facts,
        "costPerHour": costs(settings),
        "smoke": release,
    }


def running_servings(settings: Settings) -> Mapping[str, Running]:
    """ModelServings that Kthena scales, as they run. A preview may go without; raises RunError in `up`, which would reset replicas."""
    if os.environ.get(OFFLINE):
        return {}
    try:
        with ThreadPoolExecutor(1) as beside:  # the program runs in an event loop already
            return beside.submit(asyncio.run, kthena.running(settings)).result()
    except SmokeError as error:
        if not pulumi.runtime.is_dry_run():
            raise pulumi.RunError(str(error)) from None
        pulumi.log.info(f"replicas that Kthena scales are shown as they were applied last: {error}")
        return {}


def context_of(settings: Settings, stack: str, runtime: LocalRuntime | None) -> Context:
    """The stack's identity, provider and images."""
    cluster = settings.cluster
    return Context(
        stack=stack,
        environment=settings.environment,
        namespace=cluster.namespace,
        provider=kubernetes.Provider(
            "cluster",
            kubeconfig=cluster.kubeconfig_path,
            context=cluster.context,
            cluster_identifier=cluster.identifier,
            enable_secret_mutable=True,
            enable_config_map_mutable=True,
        ),
        image_pull_secret=cluster.image_pull_secret,
        images=cluster.images if isinstance(cluster.images, dict) else runtime.images if runtime else {},
    )


try:
    outputs = main(Settings.load(pulumi.Config(NAMESPACE)), pulumi.get_stack())
except SettingsError as error:
    raise pulumi.RunError(str(error)) from None
for name, value in outputs.items():
    pulumi.export(name, value)
