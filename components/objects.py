"""Kubernetes objects as plain manifests, built by pure functions and declared here.

A manifest is what `kubectl` would read, so that tests, policies and rendering see the very object that is applied.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import pulumi
import pulumi_kubernetes as kubernetes

from components.context import Context
from components.pods.pull_secret import with_pull_secret

Manifest = Mapping[str, Any]

FIELD_MANAGER: Final = "pulumi.com/patchFieldManager"

_TYPES: Final = {
    ("v1", "Namespace"): lambda: kubernetes.core.v1.Namespace,
    ("v1", "ConfigMap"): lambda: kubernetes.core.v1.ConfigMap,
    ("v1", "Secret"): lambda: kubernetes.core.v1.Secret,
    ("v1", "Service"): lambda: kubernetes.core.v1.Service,
    ("v1", "ServiceAccount"): lambda: kubernetes.core.v1.ServiceAccount,
    ("v1", "PersistentVolumeClaim"): lambda: kubernetes.core.v1.PersistentVolumeClaim,
    ("apps/v1", "Deployment"): lambda: kubernetes.apps.v1.Deployment,
    ("apps/v1", "DaemonSet"): lambda: kubernetes.apps.v1.DaemonSet,
    ("apps/v1", "StatefulSet"): lambda: kubernetes.apps.v1.StatefulSet,
    ("batch/v1", "CronJob"): lambda: kubernetes.batch.v1.CronJob,
    ("batch/v1", "Job"): lambda: kubernetes.batch.v1.Job,
    ("policy/v1", "PodDisruptionBudget"): lambda: kubernetes.policy.v1.PodDisruptionBudget,
    ("autoscaling/v2", "HorizontalPodAutoscaler"): lambda: kubernetes.autoscaling.v2.HorizontalPodAutoscaler,
    ("networking.k8s.io/v1", "NetworkPolicy"): lambda: kubernetes.networking.v1.NetworkPolicy,
    ("networking.k8s.io/v1", "Ingress"): lambda: kubernetes.networking.v1.Ingress,
    ("rbac.authorization.k8s.io/v1", "Role"): lambda: kubernetes.rbac.v1.Role,
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): lambda: kubernetes.rbac.v1.RoleBinding,
    ("rbac.authorization.k8s.io/v1", "ClusterRole"): lambda: kubernetes.rbac.v1.ClusterRole,
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): lambda: kubernetes.rbac.v1.ClusterRoleBinding,
    ("scheduling.k8s.io/v1", "PriorityClass"): lambda: kubernetes.scheduling.v1.PriorityClass,
    ("apiregistration.k8s.io/v1", "APIService"): lambda: kubernetes.apiregistration.v1.APIService,
}
"""Looked up lazily: the first touch of a group of pulumi_kubernetes costs 0.3 to 0.8 s."""


def declare(manifest: Manifest, parent: pulumi.Resource, context: Context, **options: Any) -> pulumi.CustomResource:
    """One Kubernetes object as a child of `parent`, named like its metadata.name; custom kinds become CustomResources.

    `options` are resource options (depends_on, ignore_changes, custom_timeouts …).
    """
    manifest = with_pull_secret(manifest, context.image_pull_secret)
    context.ledger.append(manifest)
    version, kind = manifest["apiVersion"], manifest["kind"]
    name = _resource_name(manifest)
    # An object in another namespace (a RoleBinding in kube-system) does not go with the stack's own.
    namespaced = manifest["metadata"].get("namespace") == context.namespace
    opts = context.namespaced_opts(parent, **options) if namespaced else context.opts(parent, **options)
    body = {key: value for key, value in manifest.items() if key not in ("apiVersion", "kind")}
    body["metadata"] = owned(manifest["metadata"])
    if known := _TYPES.get((version, kind)):
        return known()(name, opts=opts, **{_snake(key): value for key, value in body.items()})
    return kubernetes.apiextensions.CustomResource(name, api_version=version, kind=kind, opts=opts, **body)


def owned(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata with one fixed field manager: the provider's random one makes an object that a killed run left a conflict."""
    annotations = dict(metadata.get("annotations") or {})
    return {**metadata, "annotations": {FIELD_MANAGER: "moonstack"} | annotations}


def _resource_name(manifest: Manifest) -> str:
    """Pulumi's name: the object's own; the kind keeps two objects of one name apart in the URN already."""
    return manifest["metadata"]["name"]


def _snake(key: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key).lower()
