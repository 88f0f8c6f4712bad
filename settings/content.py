"""What a stack serves, apart from where and how large: the part of a release that is promoted from stack to stack."""

from typing import Any

from rules.digest import short
from settings.settings import Settings


def content(settings: Settings) -> dict[str, Any]:
    """Images, and each model with its revision and everything of its engine that changes answers or speed."""
    return {
        "images": settings.cluster.images,
        "models": {
            model.name: {
                "revision": model.weights.revision,
                "engine": model.engine.model_dump(mode="json"),
                "shape": model.shape,
                "connector": model.connector,
                "backend": model.backend,
            }
            for model in settings.models
        },
    }


def content_digest(settings: Settings) -> str:
    """16 hex digits over `content`."""
    return short(content(settings))


def versions(settings: Settings) -> dict[str, str]:
    """Part → version, for people."""
    engines = {}
    for model in settings.models:
        engine = f"{model.engine.version or model.engine.build} ({model.engine.dtype})"
        engines[f"model {model.name}"] = f"revision {model.weights.revision[:12]}, engine {engine}"
    images = settings.cluster.images
    return engines | ({f"image {name}": image for name, image in images.items()} if isinstance(images, dict) else {})
