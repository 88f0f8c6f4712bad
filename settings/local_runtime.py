"""What `make up` built for the local cluster: image references, the engine's folder, the development models."""

from typing import Self

from pydantic import Field, ValidationError

from rules.problem import Problem
from settings.base import Group
from settings.errors import SettingsError, from_pydantic
from settings.paths import state_dir

FILE = "images.json"


class HostEngine(Group):
    """The CPU engine's environment: a folder of the host, mounted read-only."""

    host_path: str
    mount_path: str
    command: tuple[str, ...]
    environment: dict[str, str] = Field(default_factory=dict)


class DevelopmentModel(Group):
    """A model made on the spot."""

    path: str
    revision: str = Field(min_length=12)


class LocalRuntime(Group):
    """The contents of `images.json` in the state directory."""

    images: dict[str, str]
    engine: HostEngine
    models: dict[str, DevelopmentModel]

    @classmethod
    def load(cls) -> Self:
        """The runtime that was built last. Raises SettingsError when there is none."""
        path = state_dir() / FILE
        try:
            return cls.model_validate_json(path.read_text())
        except FileNotFoundError:
            problem = Problem(
                "moonstack:cluster.images", "local", "the local images are not built", "run `make up` first"
            )
            raise SettingsError([problem], str(path)) from None
        except ValidationError as error:
            raise SettingsError(from_pydantic(error, FILE, cls), str(path)) from None
