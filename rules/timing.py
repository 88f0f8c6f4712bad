"""Every time budget of a serving pod, derived from the weights' size and the longest request."""

import math
from typing import Final

PRESTOP_SECONDS: Final = 8
"""Routers drop a deleted pod within a second; 8 s let requests in flight to it arrive (measured, zero of 96 lost)."""
NAME_SECONDS: Final = 36
"""Until the gateway has forgotten a deleted router: kubeadm's CoreDNS keeps a name for 30 s, Envoy asks every 5 s, and 1 s for the list."""
GRACE_MARGIN_SECONDS: Final = 12
REMOVAL_MARGIN_SECONDS: Final = 120
"""Beyond a pod's grace, for the kubelet and the garbage collector to take it away."""
PROBE_PERIOD_SECONDS: Final = 2
READINESS_PERIOD_SECONDS: Final = 1
"""An engine whose core died answers 500 at once for about 3 s and looks idle, so routers prefer it: it must be unready sooner."""
READINESS_FAILURES: Final = 2
"""A busy engine may answer one check late (5 s, seen on two saturated cores), and with one engine a role that would stop the model."""
STARTUP_FLOOR_SECONDS: Final = 600
"""Parallel starts on a small machine took up to 300 s; volcano-sh/kthena recreates a whole group when a probe gives up early."""
STORE_START_FAILURES: Final = 60
"""Startup probe failures of a store pod, one every 2 s: it looks for a master for 88 s and then ends by itself (0.3.13, measured)."""
STARTUP_SAFETY: Final = 3
FIRST_BYTE_MARGIN_SECONDS: Final = 5
LONGEST: Final = 2**31 - 1
"""Kubernetes counts seconds and probe failures in 32 bits."""


def load_seconds(weight_bytes: int, bytes_per_second: int, engine_start_seconds: int) -> int:
    """Expected time from container start to a loaded model: 7B in about 30 s, 70B in 2 minutes or more (B4)."""
    return engine_start_seconds + math.ceil(weight_bytes / bytes_per_second)


def startup_failure_threshold(load: int) -> int:
    """Startup probe failures allowed at one probe every `PROBE_PERIOD_SECONDS`."""
    return min(LONGEST, math.ceil(max(STARTUP_FLOOR_SECONDS, STARTUP_SAFETY * load) / PROBE_PERIOD_SECONDS))


def router_prestop_seconds(longest_request: int) -> int:
    """preStop of a router: found by name, and it ends at once on SIGTERM, open streams and all (measured, 2 of 25 broken)."""
    return NAME_SECONDS + longest_request


def router_grace_seconds(longest_request: int) -> int:
    """terminationGracePeriodSeconds of a router."""
    return router_prestop_seconds(longest_request) + GRACE_MARGIN_SECONDS


def grace_seconds(longest_request: int) -> int:
    """terminationGracePeriodSeconds of an engine: preStop, then it drains for as long as the longest request, then a margin."""
    return PRESTOP_SECONDS + longest_request + GRACE_MARGIN_SECONDS


def removal_seconds(grace: int) -> int:
    """How long Pulumi waits for pods to go: it deletes in the foreground, so as long as they take, and gives up after 600 s by itself."""
    return min(LONGEST, max(STARTUP_FLOOR_SECONDS, grace + REMOVAL_MARGIN_SECONDS))


def rollout_seconds(load: int, longest_request: int, pods: int) -> int:
    """How long a rollout of `pods` one after the other may take (progressDeadlineSeconds and Pulumi's own timeout)."""
    one = max(STARTUP_FLOOR_SECONDS, STARTUP_SAFETY * load) + grace_seconds(longest_request)
    return min(LONGEST, one * max(1, pods))
