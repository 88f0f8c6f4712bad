"""The state folder belongs to Moonstack alone: `down` removes it, so it is marked when it is made, and nothing else is taken."""

from pathlib import Path

from local.errors import LocalError
from settings.paths import state_dir

_MARK = ".moonstack"


def claim() -> Path:
    """Create and mark the state folder, readable by its owner alone; returns it.

    Raises LocalError for a folder that has other things in it.
    """
    folder = state_dir()
    if not (folder / _MARK).exists():
        if folder.exists() and any(folder.iterdir()):
            raise LocalError(
                f"{folder} holds other files, and `down` would remove them: set MOONSTACK_STATE to a new folder"
            )
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        (folder / _MARK).touch()
    return folder


def is_claimed() -> bool:
    """Whether the state folder is there and ours."""
    return (state_dir() / _MARK).exists()
