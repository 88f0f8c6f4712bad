"""The controller's own metrics, named in the catalogue (rules/metrics/platform.py)."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class Telemetry:
    """One registry a controller, so that tests can have several in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        name, target = "moonstack_capacity", ("target",)
        self.leader = Gauge(f"{name}_leader", "1 on the replica that acts", registry=self.registry)
        self.pods = Gauge(f"{name}_pods", "Engine pods", ("target", "state"), registry=self.registry)
        self.scrapes = Counter(f"{name}_scrapes", "Scrapes of engines", ("result",), registry=self.registry)
        self.scrape_seconds = Histogram(f"{name}_scrape_seconds", "Time of one scrape", registry=self.registry)
        self.rejected = Counter(
            f"{name}_rejected_samples", "Answers that can't be true", ("reason",), registry=self.registry
        )
        self.floor = Gauge(f"{name}_floor_replicas", "minReplicas as applied", target, registry=self.registry)
        self.clamped = Gauge(
            f"{name}_floor_clamped", "1 while the wanted floor is above maxReplicas", target, registry=self.registry
        )
        self.load = Gauge(f"{name}_load_requests", "Requests in flight now", target, registry=self.registry)
        self.forecast = Gauge(f"{name}_forecast_requests", "Requests expected ahead", target, registry=self.registry)
        self.forecast_error = Gauge(
            f"{name}_forecast_error_requests", "Forecast for this minute less what came", target, registry=self.registry
        )
        self.activations = Counter(
            f"{name}_warm_activations", "Warm pods put into service", target, registry=self.registry
        )
        self.warm_week = Gauge(
            f"{name}_warm_week_activations",
            "Warm pods put into service since the last review",
            target,
            registry=self.registry,
        )
        self.warm_size = Gauge(f"{name}_warm_size", "Declared warm pods", target, registry=self.registry)
        self.action_errors = Counter(
            f"{name}_action_errors", "Actions that the API server refused", ("action",), registry=self.registry
        )
