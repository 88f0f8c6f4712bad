"""The packages of this repository that run in the cluster: capacity, and what it imports."""

from pathlib import Path

from local.runtime import cache

NAMES = ("capacity", "rules", "settings")

_ROOT = Path(__file__).parents[2]


def files() -> dict[str, Path]:
    """Path in the image, relative → file of the checkout; bytecode and hidden files stay out."""
    found = {}
    for name in NAMES:
        for path in sorted((_ROOT / name).rglob("*")):
            relative = path.relative_to(_ROOT)
            if path.is_file() and not any(part.startswith((".", "__pycache__")) for part in relative.parts):
                found[relative.as_posix()] = path
    return found


def digest() -> str:
    """Changes with any byte of those files."""
    return cache.key(*(part for path, source in files().items() for part in (path, source.read_bytes())))
