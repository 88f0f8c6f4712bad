"""The custom resource definitions that a stack needs and the local cluster lacks, from the folder of a Kthena release."""

import os
from pathlib import Path
from typing import Any, Final

import yaml

from local.errors import LocalError
from local.workspace import CHECKOUT
from rules.versions import KTHENA
from settings.settings import Settings

VARIABLE: Final = "KTHENA_CRDS"


def custom_resources(settings: Settings) -> list[dict[str, Any]]:
    """Kthena's CRDs of the stack's release, if a model needs them. Raises LocalError when they aren't there."""
    if not any(model.backend == "kthena" for model in settings.models):
        return []
    folder = crd_folder(settings.kthena.release)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [yaml.load(path.read_text(), Loader=loader) for path in sorted(folder.glob("*.yaml"))]


def crd_folder(release: str) -> Path:
    """The folder of a release: KTHENA_CRDS, a sibling of it for another release, or `../shared/crds` beside the checkout."""
    name = f"kthena-{KTHENA[release]}"
    given = os.environ.get(VARIABLE)
    candidates = [Path(given), Path(given).parent / name] if given else [CHECKOUT.parent / "shared" / "crds" / name]
    found = next((path for path in candidates if path.name == name and path.is_dir()), None)
    if found is None:
        raise LocalError(
            f"no CRDs of Kthena {release}: set {VARIABLE} to a folder {name} with the files of charts/kthena/charts/*/crds"
        )
    return found
