"""What all of Kthena's objects share."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

Dns1035 = Annotated[str, StringConstraints(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
Duration = Annotated[str, StringConstraints(pattern=r"^\d+(ms|s|m)$")]
Quantity = Annotated[str, StringConstraints(pattern=r"^\d+(\.\d+)?m?$")]
Percent = Annotated[int, Field(ge=0, le=1000)]


class Part(BaseModel):
    """A part of an object: camelCase in YAML, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)


class KubernetesObject(Part):
    """An object with its type and metadata."""

    api_version: str
    kind: str
    metadata: dict[str, Any]

    def manifest(self) -> dict[str, Any]:
        """The object as the API server takes it; fields that are None are left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)
