"""The Kubernetes provider's source: its schema and mapping are embedded, made compact from what its module carries."""

import json
import shutil
from pathlib import Path

from local.tools import go
from local.tools.catalogue import PROVIDER, GoBuild

_MODULE = "github.com/pulumi/pulumi-kubernetes/provider/v4"


def prepare(build: GoBuild, target: Path) -> None:
    """Fill the folder `target` with what `go build` needs: the module's own files and the two that `main.go` embeds."""
    for source in build.folder.iterdir():
        shutil.copy(source, target)
    program = go.module_folder(target, _MODULE) / "cmd" / "pulumi-resource-kubernetes"
    schema = json.loads((program / "schema.json").read_text())
    _write(target / "schema-embed.json", {**schema, "version": PROVIDER})
    _write(target / "terraform-mapping-embed.json", json.loads((program / "terraform-mapping.json").read_text()))


def _write(target: Path, document: object) -> None:
    target.write_text(json.dumps(document, separators=(",", ":")))
