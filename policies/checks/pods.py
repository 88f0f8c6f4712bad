"""What a container may do on its node, and which image it runs."""

import re
from collections.abc import Iterator
from typing import Final

from policies.objects import Object
from policies.rule import Facts, Finding, Rule
from policies.unknown import is_unknown, known, text
from rules.chips import CHIPS

ALLOWED_CAPABILITIES: Final = frozenset(
    {"NET_BIND_SERVICE", *(c for chip in CHIPS.values() for c in chip.capabilities)}
)
"""The restricted Pod Security Standard's one, and those that a chip's transport needs."""
_DIGEST: Final = re.compile(r"@sha256:[0-9a-f]{64}$")


def restricted(one: Object, facts: Facts) -> Iterator[Finding]:
    """No root, no privilege, no host namespaces, no capability beyond the chip's need."""
    for pod in one.pods:
        for field in ("hostNetwork", "hostPID", "hostIPC"):
            if pod.spec.get(field):
                yield Finding(one, f"{pod.path}.{field}", "leaves the pod's own namespaces; remove it")
        of_pod = pod.spec.get("securityContext") or {}
        for path, container in pod.containers():
            own = container.get("securityContext") or {}
            if own.get("privileged"):
                yield Finding(one, f"{path}.securityContext.privileged", "gives the whole node away; remove it")
            if known(own.get("allowPrivilegeEscalation")) is not False:
                yield Finding(one, f"{path}.securityContext.allowPrivilegeEscalation", "must be false")
            if known(own.get("runAsNonRoot", of_pod.get("runAsNonRoot"))) is not True:
                yield Finding(one, f"{path}.securityContext.runAsNonRoot", "must be true, here or for the pod")
            capabilities = own.get("capabilities") or {}
            if "ALL" not in (capabilities.get("drop") or ()):
                yield Finding(one, f"{path}.securityContext.capabilities.drop", "must hold ALL")
            for capability in capabilities.get("add") or ():
                if text(capability) not in ALLOWED_CAPABILITIES:
                    yield Finding(one, f"{path}.securityContext.capabilities.add", f"{capability} is no chip's need")


def pinned(one: Object, facts: Facts) -> Iterator[Finding]:
    """Images have a version, and in prod a digest: a tag can be moved to other content."""
    for pod in one.pods:
        for path, container in pod.containers():
            image = container.get("image")
            if is_unknown(image):
                yield Finding(one, f"{path}.image", "unknown until up", undecided=True)
            elif _DIGEST.search(text(image)):
                continue
            elif facts.environment == "prod":
                yield Finding(one, f"{path}.image", f"{image} has no digest; pin it as name:tag@sha256:…")
            elif not (tag := text(image).rpartition("/")[2].partition(":")[2]) or tag == "latest":
                yield Finding(one, f"{path}.image", f"{image} has no version; add a tag other than latest")


RULES: Final = (
    Rule(
        id="restricted-pods",
        concern="network",
        severity="high",
        description="Pods run without root, privilege, host namespaces and capabilities beyond a chip's need.",
        each=restricted,
        reads_pods=True,
    ),
    Rule(
        id="pinned-images",
        concern="network",
        severity="medium",
        description="Images are pinned: by tag, in prod by digest.",
        each=pinned,
        reads_pods=True,
    ),
)
