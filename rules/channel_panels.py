"""What the external channel costs and how much of its quota is left, as graphs over the gateway's own metrics."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rules.alerts import Panel


@dataclass(frozen=True, slots=True)
class Price:
    """Yuan for a million tokens of a model at the channel."""

    model: str
    prompt: float
    answer: float

    def of(self, direction: Literal["prompt", "completion"]) -> float:
        """Yuan for a million tokens of one direction."""
        return self.prompt if direction == "prompt" else self.answer


def channel_panels(namespace: str, quota_qps: int, prices: Sequence[Price]) -> list[Panel]:
    """Share, quota left and, where prices are declared, spend."""
    here = f'namespace="{namespace}"'
    outside = f'{here},served_by=~"channel/.*"'
    share = Panel(
        title="Channel's share of requests",
        query=f"sum(rate(envoy_moonstack_requests{{{outside}}}[5m])) / sum(rate(envoy_moonstack_requests{{{here}}}[5m]))",
        unit="percentunit",
        legend="share",
    )
    left = Panel(
        title="Channel quota left",
        query=f"{quota_qps} - sum(rate(envoy_moonstack_requests{{{outside}}}[1m]))",
        unit="reqps",
        legend="requests a second",
    )
    return [share, left, *_spend(here, [price for price in prices if price.prompt or price.answer])]


def _spend(here: str, prices: Sequence[Price]) -> list[Panel]:
    if not prices:
        return []
    terms = [
        f'sum(increase(envoy_moonstack_{tokens}_tokens{{{here},served_by="channel/{price.model}"}}[1d])) * {yuan / 1e6:.9g}'
        for price in prices
        for tokens, yuan in (("prompt", price.prompt), ("completion", price.answer))
        if yuan
    ]
    query = " + ".join(f"({term} or vector(0))" for term in terms)
    return [Panel(title="Channel spend of a day", query=query, unit="currencyCNY", legend="yuan")]
