"""The versioned catalogue of metrics: what exists, with which labels, unit, range and kind."""

from typing import Final, Literal

from rules.metrics.metric import Catalogue, EngineSignals, Metric
from rules.metrics.platform import CAPACITY, GATEWAY, MOONCAKE, ROUTER
from rules.metrics.sglang import SGLANG, SGLANG_SIGNALS
from rules.metrics.vllm import VLLM, VLLM_SIGNALS

Engine = Literal["vllm", "sglang"]

ENGINES: Final[dict[Engine, tuple[Catalogue, EngineSignals]]] = {
    "vllm": (VLLM, VLLM_SIGNALS),
    "sglang": (SGLANG, SGLANG_SIGNALS),
}
CATALOGUES: Final[tuple[Catalogue, ...]] = (VLLM, SGLANG, GATEWAY, ROUTER, MOONCAKE, CAPACITY)


def find(series: str) -> tuple[Catalogue, Metric] | None:
    """The catalogue and metric that a series name belongs to, or None."""
    for catalogue in CATALOGUES:
        if metric := catalogue.find(series):
            return catalogue, metric
    return None


__all__ = ["CATALOGUES", "ENGINES", "Catalogue", "Engine", "EngineSignals", "Metric", "find"]
