"""Keys in files of the state directory, generated for development."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from settings.key_values import STAGES, Stage, Versions
from settings.paths import state_dir


class LocalKeys:
    """One file a key and version, mode 0600: `<id>`, `<id>.next`, `<id>.previous`; ids have no dots."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or state_dir() / "keys"

    def read(self, ids: Sequence[str]) -> Mapping[str, Versions]:
        """The versions of each key that has a file."""
        return {key_id: versions for key_id in ids if (versions := self._versions(key_id))}

    def where(self, key_id: str) -> str:
        """The file's name below the state directory."""
        return f"the file keys/{key_id} of the state directory"

    def put(self, key_id: str, stage: Stage, value: str) -> None:
        """Write one version so that a reader sees the old file or the new one, never half of it."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self.path(key_id, stage)
        scratch = path.with_name(f"{path.name}.part")
        scratch.unlink(missing_ok=True)
        with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(value)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)

    def drop(self, key_id: str, stage: Stage) -> None:
        """Forget one version; no version of that stage is fine."""
        self.path(key_id, stage).unlink(missing_ok=True)

    def path(self, key_id: str, stage: Stage = "current") -> Path:
        """The file of one version."""
        return self.folder / (key_id if stage == "current" else f"{key_id}.{stage}")

    def _versions(self, key_id: str) -> Versions:
        return {stage: path.read_text() for stage in STAGES if (path := self.path(key_id, stage)).is_file()}
