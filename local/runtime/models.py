"""Development models: made on the spot from a seed, so that they need no download and every machine has the same."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.progress import Progress
from local.runtime import base, cache, engine, python_packages
from settings.paths import cache_dir

_RECIPE = Path(__file__).with_name("development_model.py")

WIDE = {
    "hidden_size": 1024,
    "intermediate_size": 2816,
    "num_hidden_layers": 8,
    "num_attention_heads": 16,
    "num_key_value_heads": 1,
    "head_dim": 64,
    "max_position_embeddings": 4096,
}
"""174 MFLOP a token for 4 KiB of KV in float32 (2 KiB in bfloat16): a large model's ratio, so reusing KV pays off visibly."""

TINY = {
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "max_position_embeddings": 4096,
}
"""Answers fast: for tests of elasticity, where the number of engines matters and their work does not."""


@dataclass(frozen=True)
class Model:
    """A model on this machine: its folder, and the digest of its files as its revision."""

    path: Path
    revision: str


SPECIFICATIONS: dict[str, dict[str, Any]] = {
    "dev-wide": {"seed": 1, "shape": WIDE},
    "dev-wide-b": {"seed": 2, "shape": WIDE},
    "dev-tiny": {"seed": 3, "shape": TINY},
    "dev-tiny-b": {"seed": 4, "shape": TINY},
}
"""All models share one tokenizer; each `-b` differs from the one before it in its weights alone."""


def ensure(name: str, progress: Progress) -> Model:
    """Have a development model. Raises LocalError if it can't be made."""
    specification = json.dumps(SPECIFICATIONS[name], sort_keys=True)
    recipe = cache.key(specification, _RECIPE.read_bytes(), python_packages.digest("engine"))
    folder = cache_dir() / "models" / f"{name}-{recipe}"
    if not folder.exists():
        root, packages = base.ensure(progress), engine.ensure(progress)
        with progress.phase(f"development model {name}"):
            cache.ensure(folder, lambda partial: _make(root, packages, specification, partial))
    return Model(folder, revision(folder))


def revision(folder: Path) -> str:
    """SHA-256 over the names and contents of a model's files."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        with path.open("rb") as content:
            digest.update(f"{hashlib.file_digest(content, 'sha256').hexdigest()}  {path.name}\n".encode())
    return digest.hexdigest()


def _make(root: Path, packages: Path, specification: str, target: Path) -> None:
    target.mkdir()
    base.run(
        root,
        ["python3", "/opt/recipe/development_model.py", specification, "/opt/model"],
        binds={engine.MOUNT_PATH: packages, "/opt/recipe": _RECIPE.parent, "/opt/model": target},
        environment={"PYTHONPATH": engine.MOUNT_PATH, "HF_HUB_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1"},
    )
