"""A fluid model of a role's engines: requests arrive, wait for a slot of a batch, and are served."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class PodModel:
    """One pod: slots of its batch, seconds that a request stays in it, time to first token when nothing waits, load time."""

    slots: int
    request_seconds: float
    first_token_seconds: float
    load_seconds: float


@dataclass
class EngineModel:
    """All pods of one role; starting pods serve once their model is loaded."""

    pod: PodModel
    ready: int
    in_system: float = 0.0
    _loading: list[float] = field(default_factory=list)

    @property
    def replicas(self) -> int:
        """Pods that exist, loaded or not."""
        return self.ready + len(self._loading)

    def scale(self, now: float, replicas: int) -> None:
        """Start pods, or remove them: the ones that still load go first."""
        while self.replicas < replicas:
            self._loading.append(now + self.pod.load_seconds)
        while self.replicas > replicas and self._loading:
            self._loading.pop()
        self.ready = min(self.ready, replicas)

    def advance(self, now: float, step: float, rate: float, helpers: int) -> None:
        """One time step; `helpers` are activated warm pods that take their share."""
        loaded = sum(at <= now for at in self._loading)
        self.ready, self._loading = self.ready + loaded, [at for at in self._loading if at > now]
        served = min(self.in_system + rate * step, self.running(helpers) / self.pod.request_seconds * step)
        self.in_system = max(0.0, self.in_system + rate * step - served)

    def running(self, helpers: int) -> float:
        """Requests in batches."""
        return min(self.in_system, float(self.pod.slots * (self.ready + helpers)))

    def waiting(self, helpers: int) -> float:
        """Requests without a slot."""
        return max(0.0, self.in_system - self.running(helpers))

    def ttft(self, helpers: int) -> float:
        """Seconds until the first token of a request that arrives now."""
        throughput = self.pod.slots * max(1, self.ready + helpers) / self.pod.request_seconds
        return self.pod.first_token_seconds + self.waiting(helpers) / throughput
