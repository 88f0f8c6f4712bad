"""Kubernetes objects as plain manifests, built by pure functions and declared here.

A manifest is what `kubectl` would read, so that tests, policies and rendering see the very object that is applied.
"""

from collections.abc import Mapping
from typing import Any, Final

import pulumi

from components.context import Context
from components.pods.pull_secret import with_pull_secret
from components.removal import with_removal

Manifest = Mapping[str, Any]

FIELD_MANAGER: Final = "pulumi.com/patchFieldManager"

_SECRET_FIELDS: Final = ("data", "stringData")


def declare(manifest: Manifest, parent: pulumi.Resource, context: Context, **options: Any) -> pulumi.CustomResource:
    """One Kubernetes object as a child of `parent`, listed for the release's digest.

    `options` are resource options (depends_on, ignore_changes, custom_timeouts …); how long its pods may take to go is seen to here.
    """
    manifest = with_pull_secret(manifest, context.image_pull_secret)
    if timeouts := with_removal(manifest, options.pop("custom_timeouts", None)):
        options["custom_timeouts"] = timeouts
    context.ledger.append(manifest)
    # An object in another namespace (a RoleBinding in kube-system) does not go with the stack's own.
    namespaced = manifest["metadata"].get("namespace") == context.namespace
    opts = context.namespaced_opts(parent, **options) if namespaced else context.opts(parent, **options)
    return kubernetes_object({**manifest, "metadata": owned(manifest["metadata"])}, opts)


def kubernetes_object(manifest: Manifest, opts: pulumi.ResourceOptions) -> pulumi.CustomResource:
    """The resource of a manifest, as pulumi_kubernetes' own class would register it, named like its metadata.name.

    The class is left out: loading its group takes a second, and its annotations double what each object costs in a preview.
    """
    version, kind = manifest["apiVersion"], manifest["kind"]
    inputs = dict(manifest)
    if (version, kind) == ("v1", "Secret"):
        inputs |= {key: pulumi.Output.secret(inputs[key]) for key in _SECRET_FIELDS if key in inputs}
        opts = pulumi.ResourceOptions.merge(
            opts, pulumi.ResourceOptions(additional_secret_outputs=list(_SECRET_FIELDS))
        )
    group = "core/v1" if version == "v1" else version
    return pulumi.CustomResource(f"kubernetes:{group}:{kind}", manifest["metadata"]["name"], inputs, opts)


def owned(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata with one fixed field manager: the provider's random one makes an object that a killed run left a conflict."""
    annotations = dict(metadata.get("annotations") or {})
    return {**metadata, "annotations": {FIELD_MANAGER: "moonstack"} | annotations}
