"""ModelServer and ModelRoute: how Kthena's router finds the engines, and which requests it sends to them."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from components.kthena.crd.base import Dns1035, Duration, KubernetesObject, Part
from rules import kthena
from rules.connectors import KthenaConnector


class PdGroup(Part):
    """Which pods pair: all three are required, and pods without the group key are ignored."""

    group_key: str
    prefill_labels: dict[str, str] = Field(min_length=1)
    decode_labels: dict[str, str] = Field(min_length=1)


class WorkloadSelector(Part):
    """The engines' pods, in the same namespace."""

    match_labels: dict[str, str] = Field(min_length=1)
    pd_group: PdGroup | None = None


class WorkloadPort(Part):
    """The engines' port; left out it is 0 and every call fails."""

    port: int = Field(ge=1, le=65535)
    protocol: Literal["http"] = "http"


class Retry(Part):
    """Attempts of a request."""

    attempts: int = Field(ge=0)
    retry_interval: Duration


class TrafficPolicy(Part):
    """Stored and never read in 0.4; in 1.0 the timeout bounds a request."""

    timeout: Duration
    retry: Retry


class KvConnector(Part):
    """The dialogue between router and engines; left out it is `http`, answers look right and no KV moves."""

    type: KthenaConnector


class ModelServerSpec(Part):
    """The specification; `model` equals the engines' --served-model-name."""

    model: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    inference_engine: Literal["vLLM"] = "vLLM"
    workload_selector: WorkloadSelector
    workload_port: WorkloadPort
    traffic_policy: TrafficPolicy
    kv_connector: KvConnector


class ModelServer(KubernetesObject):
    """How the router reaches one model's engines."""

    api_version: str = kthena.NETWORKING
    kind: str = "ModelServer"
    spec: ModelServerSpec


class TargetModel(Part):
    """A ModelServer of the same namespace and its share."""

    model_server_name: Dns1035
    weight: int = Field(ge=0, le=100)


class RouteRule(Part):
    """The first rule that matches wins; this one matches every request of the model."""

    name: str
    target_models: tuple[TargetModel, ...] = Field(min_length=1, max_length=16)

    @model_validator(mode="after")
    def _some_weight(self) -> "RouteRule":
        if not any(target.weight for target in self.target_models):
            raise ValueError("all weights are zero: no request goes anywhere")
        return self


class RateLimit(Part):
    """Tokens per unit."""

    input_tokens_per_unit: int | None = Field(default=None, ge=1)
    output_tokens_per_unit: int | None = Field(default=None, ge=1)
    unit: Literal["second", "minute", "hour", "day", "month"]


class ModelRouteSpec(Part):
    """The specification; `modelName` is immutable and looked up in all namespaces."""

    model_name: str = Field(min_length=1)
    rules: tuple[RouteRule, ...] = Field(min_length=1, max_length=16)
    rate_limit: RateLimit | None = None


class ModelRoute(KubernetesObject):
    """Requests for one model name."""

    api_version: str = kthena.NETWORKING
    kind: str = "ModelRoute"
    spec: ModelRouteSpec
