"""How Envoy is started and how it ends without losing a request."""

from typing import Final

from components.envoy.schema import Pod
from rules.timing import FIRST_BYTE_MARGIN_SECONDS
from settings.settings import Settings

ENDPOINT_REMOVAL_SECONDS: Final = 10
"""Until every load balancer has taken the pod off its list; measured together with the wait for idle: nothing was lost."""
GRACE_MARGIN_SECONDS: Final = 10
WORKERS: Final = 1
"""One worker, so that a pod's rate limits are exact; it carries some 4,000 requests a second, where A3 wants 120."""


def arguments(settings: Settings, bootstrap: str) -> list[str]:
    """Envoy's arguments. Unknown fields are refused in files that are read later, too, where they would only be a warning."""
    return [
        "--config-path", bootstrap,
        "--concurrency", str(WORKERS),
        "--drain-time-s", str(longest_request(settings)),
        "--reject-unknown-dynamic-fields",
        "--disable-hot-restart",
        "--log-level", "error",
        "--file-flush-interval-msec", "1000",
    ]  # fmt: skip


def longest_request(settings: Settings) -> int:
    """Seconds that a request may be open: the longest of all models, in the cluster and at the channel."""
    channel = [settings.channel.longest_request_seconds] if settings.channel.enabled else []
    longest = [model.longest_request_seconds for model in settings.models]
    return max([*longest, *channel, 1]) + FIRST_BYTE_MARGIN_SECONDS


def grace_seconds(settings: Settings) -> int:
    """terminationGracePeriodSeconds of a gateway pod."""
    return ENDPOINT_REMOVAL_SECONDS + longest_request(settings) + GRACE_MARGIN_SECONDS


def drain_script(settings: Settings, pod: Pod) -> str:
    """The preStop hook (bash): fail the health check, wait to be taken off the lists, then until no request is open.

    SIGTERM alone cuts open streams, and the admin interface takes POST, which a preStop httpGet can't send.
    """
    return f"""\
ask() {{
  exec 3<>/dev/tcp/127.0.0.1/{pod.drain_port} || return
  printf '%s %s HTTP/1.1\\r\\nHost: drain\\r\\nConnection: close\\r\\nContent-Length: 0\\r\\n\\r\\n' "$1" "$2" >&3
  cat <&3
  exec 3>&-
}}
ask POST /healthcheck/fail >/dev/null
sleep {ENDPOINT_REMOVAL_SECONDS}
for _ in $(seq {longest_request(settings)}); do
  case $(ask GET '/stats?filter=^http.gateway.downstream_rq_active$') in *'active: 0'*) exit 0 ;; esac
  sleep 1
done
"""
