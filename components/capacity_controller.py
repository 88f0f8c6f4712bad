"""The capacity controller: metrics for the HPA, floors and warm pods, inside the cluster."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pulumi

from capacity.config import ControllerConfig
from components.context import Context
from components.objects import declare, kubernetes_object
from components.scaling import controller
from components.scaling.certificates import KeyPair, new_authority, new_certificate
from components.scaling.controller_rights import admission, rights
from rules import names
from settings.settings import Settings

ROLLOUT_TIMEOUT = "5m"


@dataclass(frozen=True, kw_only=True)
class CapacityControllerResources:
    """The controller's objects; `api` is None where a prometheus-adapter serves the metrics, or another stack's controller."""

    config: pulumi.CustomResource
    rights: Sequence[pulumi.CustomResource]
    authority: pulumi.CustomResource
    certificate: pulumi.CustomResource
    deployment: pulumi.CustomResource
    api: pulumi.CustomResource | None
    expiry: pulumi.CustomResource | None


class CapacityController(pulumi.ComponentResource):
    """Two replicas, and the registration of their API.

    The APIService depends on the Deployment, and scalers depend on this component: destroy removes HPA, APIService and
    adapter in that order, as an APIService without a backend blocks the deletion of every namespace in the cluster.
    """

    resources: CapacityControllerResources

    def __init__(self, name: str, args: Settings, context: Context, opts: pulumi.ResourceOptions | None = None) -> None:
        config = ControllerConfig.from_settings(args)
        super().__init__("moonstack:scaling:CapacityController", name, {"config": config.model_dump(mode="json")}, opts)
        self._context = context
        authority, certificate = self._create_certificates()
        needs = [declare(manifest, self, context) for manifest in (*rights(config, context), *admission(context))]
        config_map = declare(controller.config_map(config, context), self, context)
        state = declare(controller.state_map(context), self, context)
        declare(controller.budget(context), self, context)
        deployment = self._create_deployment(config, certificate, [*needs, config_map, state])
        floors = any(target.scaled for target in config.targets)
        self.resources = CapacityControllerResources(
            config=config_map,
            rights=needs,
            authority=authority,
            certificate=certificate,
            deployment=deployment,
            api=self._create_api(authority, deployment) if serves_metrics(args) else None,
            expiry=declare(controller.floor_expiry(context), self, context, depends_on=needs) if floors else None,
        )
        self.register_outputs({"deployment": deployment.id})

    def _create_deployment(
        self, config: ControllerConfig, certificate: pulumi.CustomResource, needs: list[pulumi.CustomResource]
    ) -> pulumi.CustomResource:
        manifest = controller.deployment(config, certificate_name(), self._context)
        timeouts = pulumi.CustomTimeouts(create=ROLLOUT_TIMEOUT, update=ROLLOUT_TIMEOUT)
        return declare(manifest, self, self._context, depends_on=[*needs, certificate], custom_timeouts=timeouts)

    def _create_api(self, authority: pulumi.CustomResource, deployment: pulumi.CustomResource) -> pulumi.CustomResource:
        service = declare(controller.service(self._context), self, self._context, depends_on=[deployment])
        bundle = pulumi.Output.unsecret(_data(authority).apply(lambda data: data["tls.crt"]))
        manifest = controller.api_service(self._context, bundle)
        return declare(manifest, self, self._context, depends_on=[deployment, service])

    def _create_certificates(self) -> tuple[pulumi.CustomResource, pulumi.CustomResource]:
        """Made once and kept: later runs make others, which are ignored. Not through `declare`, which lists its manifests."""
        authority = self._create_secret(f"{names.CAPACITY}-ca", _pair_data(new_authority(names.CAPACITY)))
        hosts = [controller.host(self._context)]
        signed = _data(authority).apply(lambda data: _pair_data(new_certificate(_pair(data), hosts)))
        return authority, self._create_secret(certificate_name(), signed)

    def _create_secret(self, name: str, data: pulumi.Input[dict[str, str]]) -> pulumi.CustomResource:
        manifest = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": self._context.metadata(name, "capacity"),
            "type": "kubernetes.io/tls",
            "data": data,
        }
        return kubernetes_object(manifest, self._context.namespaced_opts(self, ignore_changes=["data"]))


def needed(settings: Settings) -> bool:
    """Whether the stack has anything for the controller to do."""
    engines = settings.autoscaling.engines.enabled and settings.autoscaling.engines.implementation == "hpa"
    return serves_metrics(settings) or engines or settings.warm_pool.enabled


def serves_metrics(settings: Settings) -> bool:
    """Whether this stack registers the metrics API."""
    scaling = settings.autoscaling
    builtin = scaling.engines.metrics_source == "builtin"
    return builtin and (
        scaling.gateway.enabled or (scaling.engines.enabled and scaling.engines.implementation == "hpa")
    )


def certificate_name() -> str:
    """The serving certificate's Secret, a new one every calendar year; the authority stays, so nothing is ever untrusted."""
    return f"{names.CAPACITY}-tls-{datetime.now(UTC).year}"


def _data(secret: pulumi.CustomResource) -> pulumi.Output[dict[str, str]]:
    return pulumi.get(secret, "data")


def _pair_data(pair: KeyPair) -> dict[str, str]:
    return {"tls.crt": _encoded(pair.certificate), "tls.key": _encoded(pair.key)}


def _pair(data: Mapping[str, str]) -> KeyPair:
    return KeyPair(*(base64.b64decode(data[name]).decode() for name in ("tls.crt", "tls.key")))


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
