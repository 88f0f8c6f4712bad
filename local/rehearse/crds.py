"""The custom resource definitions that a stack needs and the local cluster lacks: those of a Kthena release."""

import os
from pathlib import Path
from typing import Any, Final

import yaml

from local.errors import LocalError
from local.tools.go import downloaded
from local.workspace import CHECKOUT
from rules.kthena import Release
from rules.versions import KTHENA
from settings.settings import Settings

VARIABLE: Final = "KTHENA_CRDS"
MODULE: Final = "github.com/volcano-sh/kthena"


def custom_resources(settings: Settings) -> list[dict[str, Any]]:
    """Kthena's CRDs of the stack's release, if a model needs them. Raises LocalError when they aren't there."""
    if not any(model.backend == "kthena" for model in settings.models):
        return []
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [yaml.load(path.read_text(), Loader=loader) for path in crd_files(settings.kthena.release)]


def crd_files(release: Release) -> list[Path]:
    """The CRDs of a release, a file each.

    From the folder KTHENA_CRDS (another release from its sibling), else from `../shared/crds` beside the checkout, else from Kthena's
    own source, which Go's module proxy keeps (`charts/kthena/charts/*/crds`). Raises LocalError when none has them.
    """
    name = f"kthena-{KTHENA[release]}"
    given = os.environ.get(VARIABLE)
    candidates = [Path(given), Path(given).parent / name] if given else [CHECKOUT.parent / "shared" / "crds" / name]
    folder = next((path for path in candidates if path.name == name and path.is_dir()), None)
    advice = f"set {VARIABLE} to a folder {name} with the files of charts/kthena/charts/*/crds"
    if folder is not None:
        return sorted(folder.glob("*.yaml"))
    if given:
        raise LocalError(f"{VARIABLE}={given} is not the folder of Kthena {release}, nor beside it: {advice}")
    try:
        source = downloaded(MODULE, KTHENA[release])
    except LocalError as error:
        raise LocalError(f"no CRDs of Kthena {release}: {advice} ({error})") from None
    return sorted(source.glob("charts/kthena/charts/*/crds/*.yaml"))
