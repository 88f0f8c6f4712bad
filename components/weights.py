"""Where a model's weights are for its pods: a mounted source, or a fetcher beside the engine that fills a cache.

The fetcher is a sidecar of the capacity image (capacity/weights): it fetches and verifies, then holds a shared lock on the model's folder
for as long as the pod lives, so that another model's fetcher never evicts weights that are in use.
"""

from typing import Any, Final

from components.pods.security import container_security
from components.pods.weights import PodWeights
from rules import names, timing
from rules.problem import Problem
from rules.quantity import to_bytes
from settings.errors import SettingsError
from settings.local_runtime import LocalRuntime
from settings.models import ModelSettings
from settings.weights import WeightsSettings

FOLDER: Final = "/weights"
READY_FILE: Final = "/tmp/weights-ready"


def pod_weights(model: ModelSettings, runtime: LocalRuntime | None, fetcher_image: str | None) -> PodWeights:
    """The volume, and the fetcher where the source isn't mounted. Raises SettingsError for a development model that isn't there."""
    weights = model.weights
    match weights.source:
        case "development":
            return _development(model, runtime)
        case "hostPath":
            return PodWeights(volume=_folder(weights.location), revision=weights.revision)
        case "pvc":
            claim, _, folder = weights.location.partition("/")
            volume = {"persistentVolumeClaim": {"claimName": claim, "readOnly": True}}
            return PodWeights(volume=volume, revision=weights.revision, sub_path=folder or None)
        case "image":
            volume = {"image": {"reference": weights.location, "pullPolicy": "IfNotPresent"}}
            return PodWeights(volume=volume, revision=weights.revision)
        case "s3" | "hub" | "modelscope":
            return _fetched(model, fetcher_image)


def entry(model: ModelSettings) -> str:
    """The folder of one revision of a model within a cache."""
    return f"{names.slug(model.name)}-{model.weights.revision[:12]}"


def _folder(path: str) -> dict[str, Any]:
    return {"hostPath": {"path": path, "type": "Directory"}}


def _development(model: ModelSettings, runtime: LocalRuntime | None) -> PodWeights:
    location = model.weights.location
    if runtime is None or location not in runtime.models:
        known = ", ".join(runtime.models) if runtime else "none"
        problem = Problem(
            f"moonstack:models {model.name} weights.location",
            location,
            f"no such development model; known: {known}",
            "run `make up`, which makes them, or use another source",
        )
        raise SettingsError([problem], "the stack configuration")
    made = runtime.models[location]
    return PodWeights(volume=_folder(made.path), revision=made.revision)


def _fetched(model: ModelSettings, image: str | None) -> PodWeights:
    if image is None:
        raise ValueError("moonstack:cluster.images lacks `capacity`, which fetches weights")
    weights = model.weights
    if weights.cache:
        volume: dict[str, Any] = {"hostPath": {"path": weights.cache.path, "type": "Directory"}}
    else:
        volume = {"emptyDir": {"sizeLimit": str(to_bytes(weights.size) * 11 // 10)}}
    return PodWeights(
        volume=volume,
        revision=weights.revision,
        sub_path=entry(model),
        init_containers=(fetcher_container(model, image),),
    )


def fetch_seconds(weights: WeightsSettings) -> int:
    """Expected seconds to fetch the weights; 0 where they are mounted."""
    return to_bytes(weights.size) // max(1, to_bytes(weights.download_bandwidth)) if weights.fetched else 0


def fetcher_arguments(model: ModelSettings) -> list[str]:
    """Arguments of `capacity.weights hold`; credentials are in the environment, never here."""
    weights = model.weights
    args = [
        "-m", "capacity.weights", "hold",
        "--source", weights.location if weights.source == "s3" else f"{weights.source}://{weights.location}",
        "--revision", weights.revision,
        "--folder", FOLDER,
        "--entry", entry(model),
        "--size", str(to_bytes(weights.size)),
        "--ready-file", READY_FILE,
    ]  # fmt: skip
    optional = {"--checksums": weights.checksums, "--endpoint": weights.endpoint}
    args += [part for flag, value in optional.items() if value for part in (flag, str(value))]
    if weights.cache:
        args += ["--limit", str(to_bytes(weights.cache.limit))]
    return [*args, "--offline"] if weights.offline else args


def fetcher_container(model: ModelSettings, image: str) -> dict[str, Any]:
    """A sidecar (an init container that stays): the engine starts once its startup probe sees the weights verified."""
    budget = max(timing.STARTUP_FLOOR_SECONDS, timing.STARTUP_SAFETY * fetch_seconds(model.weights))
    secret = model.weights.credentials_secret
    return {
        "name": "weights",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "restartPolicy": "Always",
        "command": ["python3", *fetcher_arguments(model)],
        **({"envFrom": [{"secretRef": {"name": secret}}]} if secret else {}),
        "startupProbe": {
            "exec": {"command": ["cat", READY_FILE]},
            "periodSeconds": 5,
            "failureThreshold": -(-budget // 5),
        },
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": container_security(),
        "volumeMounts": [{"name": "weights", "mountPath": FOLDER}, {"name": "tmp", "mountPath": "/tmp"}],
    }
