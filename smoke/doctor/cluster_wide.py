"""Faults of the cluster itself that look like ours."""

from collections.abc import Iterator
from typing import Final

from smoke.doctor.diagnosis import Diagnosis, Hit
from smoke.doctor.facts import Facts, condition, name_of


def root_ca_empty(facts: Facts) -> Iterator[Hit]:
    """Pods that talk to the API server trust this file."""
    if facts.root_ca is not None and not facts.root_ca.get("data", {}).get("ca.crt", "").strip():
        yield Hit("configmap/kube-root-ca.crt", "ca.crt is empty")


def api_down(facts: Facts) -> Iterator[Hit]:
    """An aggregated API that does not answer keeps every namespace from being deleted."""
    for service in facts.api_services:
        state = condition(service, "Available")
        if service["spec"].get("service") and state and state["status"] != "True":
            yield Hit(name_of(service), state.get("message", state.get("reason", "")))


def not_readable(facts: Facts) -> Iterator[Hit]:
    """What the doctor could not look at."""
    yield from (Hit(what, "not readable with these rights") for what in facts.blind)


CATALOGUE: Final = (
    Diagnosis(
        id="root-ca-empty", title="Pods have no CA for the API server", severity="error",
        cause="the controller manager publishes an empty root CA, so routers can't watch pods",
        fix="start kube-controller-manager with --root-ca-file", look="kubectl -n NS get configmap kube-root-ca.crt -o yaml",
        source="Kubernetes root-ca-cert-publisher", detect=root_ca_empty,
    ),
    Diagnosis(
        id="aggregated-api-down", title="An aggregated API does not answer", severity="error",
        cause="namespace deletion hangs in the whole cluster, and scalers that read it hold still",
        fix="bring its pods back, or delete the APIService if its owner is gone", look="kubectl get apiservices",
        source="Kubernetes API aggregation", detect=api_down,
    ),
    Diagnosis(
        id="not-readable", title="Something could not be looked at", severity="info",
        cause="the reader lacks a right, or the part does not answer", fix="grant the reader's Role of docs/smoke.md",
        look="kubectl auth can-i --list -n NS", source="this program", detect=not_readable,
    ),
)  # fmt: skip
