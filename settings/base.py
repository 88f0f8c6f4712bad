"""The base of every group of the configuration: frozen, camelCase in YAML, unknown keys refused."""

import re
from collections.abc import Callable
from functools import cache
from ipaddress import ip_address
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationInfo, field_validator
from pydantic.alias_generators import to_camel

from rules import kube_names, quantity
from settings import plain_input

_HOST: Final = re.compile(
    r"(\*\.)?([A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?"
)


class Group(BaseModel):
    """A typed part of the stack configuration; keys are camelCase in the stack file."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        use_attribute_docstrings=True,  # the JSON schema and the reference take each key's meaning from there
        allow_inf_nan=False,
    )

    @field_validator("*", mode="before")
    @classmethod
    def _plain(cls, value: Any, info: ValidationInfo) -> Any:
        plain_input.check(_taken(cls, info.field_name or ""), value)
        return value


@cache
def _taken(group: type[Group], field: str) -> plain_input.Taken:
    return plain_input.Taken.by(group.model_fields[field])


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


def _faultless(fault: Callable[[str], str | None]) -> AfterValidator:
    """A check from a rule that says what is wrong with a text, as `limit; fix`."""

    def check(value: str) -> str:
        if said := fault(value):
            raise ValueError(said)
        return value

    return AfterValidator(check)


_QUANTITY: Final = StringConstraints(pattern=r"^[0-9]+(\.[0-9]+)?(m|[kMGTP]|[KMGTP]i)?$", max_length=32)
Cpu = Annotated[str, _QUANTITY, _faultless(quantity.CPU.fault), Field(json_schema_extra={"format": "CPU"})]
"""A Kubernetes quantity of CPU such as 500m or 8, within `rules.quantity.CPU`."""
Bytes = Annotated[str, _QUANTITY, _faultless(quantity.BYTES.fault), Field(json_schema_extra={"format": "bytes"})]
"""A Kubernetes quantity of memory or disk, or of bytes a second, such as 3Gi, within `rules.quantity.BYTES`."""

LabelValue = Annotated[
    str, _faultless(kube_names.label_value_fault), Field(json_schema_extra={"format": "label value"})
]
"""The value of a label or a taint."""
LabelKey = Annotated[str, _faultless(kube_names.label_key_fault), Field(json_schema_extra={"format": "label key"})]
"""The key of a label, an annotation or a taint: `name` or `example.com/name`."""
ResourceName = Annotated[
    str, _faultless(kube_names.extended_resource_fault), Field(json_schema_extra={"format": "extended resource"})
]
"""The name of an extended resource such as rdma/hca_shared_devices_a."""

ObjectName = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", max_length=253),
    Field(json_schema_extra={"format": "DNS name"}),
]
"""The name of a Kubernetes object that Moonstack does not make itself (RFC 1123 subdomain)."""


def _host(value: str) -> str:
    try:
        return str(ip_address(value))
    except ValueError:
        if len(value) <= 253 and _HOST.fullmatch(value):
            return value.lower()
    raise ValueError("is no host; give one name such as llm.example.com, or one address")


def _host_and_port(value: str) -> str:
    host, colon, port = value.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or not 1 <= int(port) <= 65535:
        raise ValueError("has no port from 1 to 65535; write it as host:port")
    _host(host)
    return value


Host = Annotated[str, AfterValidator(_host), Field(json_schema_extra={"format": "host"})]
"""A host's DNS name, with a leading `*.` where all below it are meant, or an IP address; in lower case, as Kubernetes wants it."""
HostPort = Annotated[str, AfterValidator(_host_and_port), Field(json_schema_extra={"format": "host:port"})]
"""A host and a port."""
