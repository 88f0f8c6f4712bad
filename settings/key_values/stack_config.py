"""Keys as encrypted scalars of the stack configuration."""

from collections.abc import Mapping, Sequence
from typing import Any

from settings.errors import SettingsError
from settings.key_values import STAGES, Stage, Versions
from settings.secret_values import KEY_VALUE_PREFIX, in_clear_text


def config_key(key_id: str, stage: Stage = "current") -> str:
    """The configuration key of one version, without the namespace: keyValue-<id>, keyValue-<id>.next, keyValue-<id>.previous."""
    return f"{KEY_VALUE_PREFIX}{key_id}" if stage == "current" else f"{KEY_VALUE_PREFIX}{key_id}.{stage}"


class StackConfigKeys:
    """Reads `moonstack:keyValue-<id>` from a `pulumi.Config`; a value in clear text is refused."""

    def __init__(self, config: Any) -> None:
        self._config = config

    def read(self, ids: Sequence[str]) -> Mapping[str, Versions]:
        """The versions of each key that is configured. Raises SettingsError for one that isn't encrypted."""
        values: dict[tuple[str, Stage], str | None] = {
            (key_id, stage): self._config.get(config_key(key_id, stage)) for key_id in ids for stage in STAGES
        }
        self._refuse_clear_text([name for name, value in values.items() if value is not None])
        found: dict[str, dict[Stage, str]] = {}
        for (key_id, stage), value in values.items():
            if value is not None:
                found.setdefault(key_id, {})[stage] = value
        return found

    def where(self, key_id: str) -> str:
        """The configuration key and the command that sets it."""
        name = f"{self._config.name}:{config_key(key_id)}"
        return f"{name} (pulumi config set --secret {name}, value from stdin)"

    def _refuse_clear_text(self, names: Sequence[tuple[str, Stage]]) -> None:
        from pulumi.runtime import is_config_secret

        full = [f"{self._config.name}:{config_key(*name)}" for name in names]
        if problems := [in_clear_text(key) for key in full if not is_config_secret(key)]:
            raise SettingsError(problems, "the keys")
