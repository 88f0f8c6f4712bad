"""The gateway: Envoy in front of everything, configured from the settings alone."""

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi

from components.context import Context
from components.disruption import disruption_budget
from components.envoy.files import gateway_files, restart_digest
from components.envoy.process import grace_seconds
from components.envoy.service_config import service_files
from components.envoy.validation import validate
from components.exposure import exposure, internal_service
from components.objects import Manifest, declare
from components.pods.gateway import SELECTOR, gateway_template
from rules import labels, names
from rules.timing import STARTUP_FLOOR_SECONDS
from settings.paths import state_dir
from settings.settings import Settings


@dataclass(frozen=True, kw_only=True)
class GatewayArgs:
    """The settings, and the certificate that `tls.source: localCa` puts into the stack's own Secret."""

    settings: Settings
    certificate: Mapping[str, pulumi.Input[str]] | None = None
    """`tls.crt` and `tls.key`, PEM."""


@dataclass(frozen=True, kw_only=True)
class GatewayResources:
    """The gateway's objects; `exposure` is empty for an internal gateway."""

    config: pulumi.CustomResource
    service_config: pulumi.CustomResource
    certificate: pulumi.CustomResource | None
    service: pulumi.CustomResource
    exposure: tuple[pulumi.CustomResource, ...]
    deployment: pulumi.CustomResource
    budget: pulumi.CustomResource


class Gateway(pulumi.ComponentResource):
    """Envoy's Deployment, configuration, Services and budget. Raises SettingsError when Envoy refuses the configuration."""

    resources: GatewayResources

    def __init__(
        self, name: str, args: GatewayArgs, context: Context, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("moonstack:gateway:Gateway", name, {"exposure": args.settings.gateway.exposure}, opts)
        validate(args.settings)
        self._context = context
        files = gateway_files(args.settings)
        config = declare(config_map(names.GATEWAY_CONFIG, files, context), self, context)
        service_config = declare(config_map(names.SERVICE_CONFIG, service_files(args.settings), context), self, context)
        certificate = self._create_certificate(args.certificate)
        needs = [item for item in (config, service_config, certificate) if item]
        digest = restart_digest(files)
        self.resources = GatewayResources(
            config=config,
            service_config=service_config,
            certificate=certificate,
            service=declare(internal_service(args.settings, context), self, context),
            exposure=tuple(declare(manifest, self, context) for manifest in exposure(args.settings, context)),
            deployment=self._create_deployment(args.settings, digest, needs),
            budget=declare(disruption_budget(names.GATEWAY, "gateway", SELECTOR, context), self, context),
        )
        self.register_outputs({"deployment": self.resources.deployment.id})

    def _create_deployment(
        self, settings: Settings, digest: str, needs: list[pulumi.CustomResource]
    ) -> pulumi.CustomResource:
        seconds = STARTUP_FLOOR_SECONDS + grace_seconds(settings)
        timeouts = pulumi.CustomTimeouts(create=f"{seconds}s", update=f"{seconds}s")
        manifest = deployment(settings, self._context, digest)
        ignored = ["spec.replicas"] if settings.autoscaling.gateway.enabled else None
        return declare(
            manifest, self, self._context, depends_on=needs, custom_timeouts=timeouts, ignore_changes=ignored
        )

    def _create_certificate(self, certificate: Mapping[str, pulumi.Input[str]] | None) -> pulumi.CustomResource | None:
        if certificate is None:
            return None
        manifest = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": self._context.metadata(names.GATEWAY_TLS, "gateway"),
            "type": "kubernetes.io/tls",
            "stringData": {name: pulumi.Output.secret(value) for name, value in certificate.items()},
        }
        return declare(manifest, self, self._context)


def local_certificate(settings: Settings) -> dict[str, str] | None:
    """The certificate that the local cluster's CA signed, for `tls.source: localCa`; else None. Raises RunError."""
    if settings.gateway.tls.source != "localCa":
        return None
    folder = state_dir() / "gateway"
    try:
        return {name: (folder / name).read_text() for name in ("tls.crt", "tls.key")}
    except OSError:
        raise pulumi.RunError(
            "moonstack:gateway.tls.source: localCa: the local certificate is missing; run `make up`, or use source secret"
        ) from None


def config_map(name: str, files: Mapping[str, str], context: Context) -> Manifest:
    """A mutable ConfigMap under a fixed name: running pods take its changes up."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": context.metadata(name, "gateway"),
        "data": dict(files),
    }


def deployment(settings: Settings, context: Context, digest: str) -> Manifest:
    """Where the gateway's scaler owns `replicas`, its minimum is what to begin with, ignored from then on."""
    own = labels.recommended(names.GATEWAY, "gateway", context.stack)
    scaler = settings.autoscaling.gateway
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": context.metadata(names.GATEWAY, "gateway"),
        "spec": {
            "replicas": scaler.min_replicas if scaler.enabled else settings.gateway.replicas,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "progressDeadlineSeconds": STARTUP_FLOOR_SECONDS,
            "selector": {"matchLabels": SELECTOR},
            "template": gateway_template(settings, context.image("gateway"), context.image_pull_policy, own, digest),
        },
    }
