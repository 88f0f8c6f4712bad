"""What was deployed as a whole, for whoever proves it: written when all else is ready."""

import json
from dataclasses import dataclass

import pulumi

from components.context import Context
from components.objects import Manifest, declare
from rules import names
from settings.content import content_digest, versions
from settings.settings import Settings


@dataclass(frozen=True, kw_only=True)
class DeployedContentResources:
    """The ConfigMap that smoke reads."""

    config_map: pulumi.CustomResource


class DeployedContent(pulumi.ComponentResource):
    """The digest of images, model revisions and engine settings; declare it after everything that it speaks of."""

    resources: DeployedContentResources

    def __init__(
        self, name: str, settings: Settings, context: Context, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        digest = content_digest(settings)
        super().__init__("moonstack:proof:DeployedContent", name, {"content": digest}, opts)
        self.resources = DeployedContentResources(config_map=declare(config_map(settings, context), self, context))
        self.register_outputs({"content": digest})


def config_map(settings: Settings, context: Context) -> Manifest:
    """The digest that `smoke run` and `smoke promote` compare, and what it stands for in words."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": context.metadata(names.DEPLOYED_CONTENT, "smoke"),
        "data": {
            names.CONTENT_KEY: content_digest(settings),
            "versions.json": json.dumps(versions(settings), sort_keys=True),
        },
    }
