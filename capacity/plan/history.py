"""The load of a target minute by minute, kept for days and through restarts."""

from dataclasses import dataclass, field
from typing import Self

MINUTES_PER_DAY = 1440


@dataclass(slots=True)
class LoadHistory:
    """Mean requests in flight of each minute since `first` (minutes since the epoch); None where nothing is known."""

    days: int
    first: int = 0
    values: list[float | None] = field(default_factory=list)
    _minute: int | None = None
    _sum: float = 0.0
    _count: int = 0

    def note(self, minute: int, load: float | None) -> bool:
        """Add an observation within a minute; True when it closed an earlier minute.

        A clock that jumps back adds nothing until it has caught up; one that jumps forward leaves a gap. One that jumps
        further than the history is long, either way, starts it over.
        """
        if self._minute is not None and minute < self._minute:
            if self._minute - minute < self._limit:
                return False
            self._minute, self._sum, self._count = None, 0.0, 0
        closed = self._minute is not None and minute > self._minute
        if closed:
            self._close()
        self._minute = minute
        if load is not None:
            self._sum, self._count = self._sum + load, self._count + 1
        return closed

    @property
    def _limit(self) -> int:
        """Minutes that are kept."""
        return (self.days + 1) * MINUTES_PER_DAY

    def last(self, minute: int) -> list[float | None]:
        """All values up to and without `minute`, padded with None where the last ones are missing."""
        known = self.values[: max(0, minute - self.first)] if self.values else []
        return known + [None] * min(MINUTES_PER_DAY, max(0, minute - self.first - len(known)))

    def _close(self) -> None:
        assert self._minute is not None
        mean = self._sum / self._count if self._count else None
        self._sum, self._count = 0.0, 0
        limit = self._limit
        gap = self._minute - self.first - len(self.values) if self.values else 0
        if -limit < gap < 0:
            return
        if not self.values or abs(gap) >= limit:
            self.first, self.values, gap = self._minute, [], 0
        self.values += [None] * gap + [mean]
        surplus = len(self.values) - limit
        if surplus > 0:
            self.first, self.values = self.first + surplus, self.values[surplus:]

    def dump(self) -> str:
        """As text for a ConfigMap: about 4 bytes a minute."""
        return f"{self.first}|" + ",".join("" if v is None else f"{v:.1f}".removesuffix(".0") for v in self.values)

    @classmethod
    def load(cls, text: str, days: int) -> Self:
        """From `dump`; an unreadable text is an empty history."""
        try:
            first, _, rest = text.partition("|")
            values = [float(v) if v else None for v in rest.split(",")] if rest else []
            return cls(days=days, first=int(first), values=values)
        except ValueError:
            return cls(days=days)
