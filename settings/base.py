"""The base of every group of the configuration: frozen, camelCase in YAML, unknown keys refused."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel


class Group(BaseModel):
    """A typed part of the stack configuration; keys are camelCase in the stack file."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        use_attribute_docstrings=True,  # the JSON schema and the reference take each key's meaning from there
    )


DnsLabel = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=63),
    Field(json_schema_extra={"format": "DNS label"}),
]
"""A DNS label that starts with a letter (RFC 1035), as Kubernetes wants for namespaces and Services."""

ModelName = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:-]*$", max_length=127),
    Field(json_schema_extra={"format": "model name"}),
]
"""A model's public name: goes into routes and Lua, so plain ASCII without quotes, blanks or backslashes."""

Port = Annotated[int, Field(ge=1, le=65535)]
Quantity = Annotated[
    str,
    StringConstraints(pattern=r"^[0-9]+(\.[0-9]+)?(m|[kMGTP]|[KMGTP]i)?$"),
    Field(json_schema_extra={"format": "quantity"}),
]
"""A Kubernetes resource quantity such as 500m, 3Gi or 8."""
