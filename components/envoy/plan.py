"""Which names callers may ask for, and the places tried for each, attempt by attempt."""

from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from rules import names
from rules.chips import CHIPS
from settings.channel import ChannelModel
from settings.models import ModelSettings
from settings.settings import Settings

Place = Literal["cluster", "channel"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One place that can answer: a model of the cluster, or one at the channel."""

    place: Place
    model: str
    """The name under which the place knows the model."""
    longest: int
    """Seconds that an answer may take there."""
    entry: ChannelModel | None = None
    """The alias that leads here, with its defaults; none for an exact name."""

    @property
    def cluster(self) -> str:
        """The Envoy cluster that reaches it with its own name of the model already in the body."""
        return f"in-{names.slug(self.model)}" if self.place == "cluster" else "channel"

    @property
    def served_by(self) -> str:
        """What the answer's header says."""
        return f"{self.place}/{self.model}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicModel:
    """A name that callers may ask for; one attempt a target, in order."""

    name: str
    attempts: tuple[Target, ...]
    alias: bool = False

    @property
    def slug(self) -> str:
        """A short form for names inside the configuration."""
        return names.slug(self.name)

    @property
    def longest(self) -> int:
        """Seconds that an answer may take at any of its targets."""
        return max(target.longest for target in self.attempts)

    def inside(self) -> tuple[Target, ...]:
        """The attempts that stay in the cluster: all that pod other than chat may use."""
        return tuple(target for target in self.attempts if target.place == "cluster")


def public_models(settings: Settings) -> list[PublicModel]:
    """Exact names first, then aliases; the group of all aliases is `moe.py`'s."""
    return [*_exact(settings), *aliases(settings)]


def aliases(settings: Settings) -> list[PublicModel]:
    """Each alias: its own model first, then the others in the order of fallback, at most `maxExpertsPerRequest`."""
    placed = {model.alias: target for model in settings.channel_models.models if (target := _place(settings, model))}
    return [
        PublicModel(
            name=alias,
            attempts=tuple(placed[other] for other in _order(settings, alias, placed)),
            alias=True,
        )
        for alias in placed
    ]


def _exact(settings: Settings) -> Iterator[PublicModel]:
    attempts = settings.channel.retry.max_attempts
    for model in settings.models:
        inside = Target(place="cluster", model=model.name, longest=model.longest_request_seconds)
        outside = _at_the_channel(settings, next(_twins(settings, model), None))
        last = (outside,) if outside and settings.channel_models.fallback.enabled and attempts > 1 else ()
        yield PublicModel(name=model.name, attempts=(inside,) * (attempts - len(last)) + last)
    served = {model.name for model in settings.models}
    entries = {entry.model_name: entry for entry in settings.channel_models.models if entry.model_name not in served}
    for name, entry in entries.items():
        if outside := _at_the_channel(settings, entry):
            yield PublicModel(name=name, attempts=(outside,) * attempts)


def _twins(settings: Settings, model: ModelSettings) -> Iterator[ChannelModel]:
    return (entry for entry in settings.channel_models.models if (entry.in_cluster or entry.model_name) == model.name)


def _at_the_channel(settings: Settings, entry: ChannelModel | None) -> Target | None:
    if entry is None or not settings.channel.enabled:
        return None
    return Target(place="channel", model=entry.model_name, longest=settings.channel.longest_request_seconds)


def _place(settings: Settings, entry: ChannelModel) -> Target | None:
    """The model in the cluster when it is served there on a chip of its affinity, else at the channel."""
    for model in settings.models:
        if model.name == (entry.in_cluster or entry.model_name) and vendors_of(settings, model) & affinity(entry):
            return Target(place="cluster", model=model.name, longest=model.longest_request_seconds, entry=entry)
    outside = _at_the_channel(settings, entry)
    return replace(outside, entry=entry) if outside else None


def vendors_of(settings: Settings, model: ModelSettings) -> set[str]:
    """Vendors of the chips that a model runs on."""
    pools = {pool.name: pool for pool in settings.node_pools}
    roles = [role for placements in model.roles().values() for role in placements]
    return {CHIPS[pools[role.pool].chip].vendor for role in roles}


def affinity(entry: ChannelModel) -> set[str]:
    """Vendors of the chips that a model has an affinity to."""
    return {"huawei" if chip == "ascend" else chip for chip in entry.chip_affinity}


def _order(settings: Settings, alias: str, placed: Container[str]) -> list[str]:
    if not settings.channel_models.fallback.enabled:
        return [alias]
    order = by_preference(settings, settings.channel_models.fallback.order)
    rest = [other for other in order if other != alias and other in placed]
    return [alias, *rest][: settings.channel.moe.max_experts_per_request]


def by_preference(settings: Settings, first: tuple[str, ...] = ()) -> list[str]:
    """All aliases: those of `first` in that order, then the rest by the most preferred chip of their affinity."""
    entries = [entry for entry in settings.channel_models.models if entry.alias not in first]
    return [*first, *(entry.alias for entry in sorted(entries, key=lambda entry: preference_rank(settings, entry)))]


def preference_rank(settings: Settings, entry: ChannelModel) -> int:
    """Position in `channel.chip.preference` of the best chip that the model has an affinity to; unlisted chips come last."""
    preference = settings.channel.chip.preference
    return min((preference.index(chip) if chip in preference else len(preference)) for chip in entry.chip_affinity)
