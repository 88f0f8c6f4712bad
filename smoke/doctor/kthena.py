"""Models of backend kthena that Kthena does not serve, or does not scale."""

from collections.abc import Iterator
from typing import Final

from smoke import kthena
from smoke.doctor.diagnosis import Diagnosis, Hit
from smoke.doctor.facts import Facts


def not_served(facts: Facts) -> Iterator[Hit]:
    """Its controller is not there, or waits for pods."""
    if "Kthena's objects" not in facts.blind:
        yield from (Hit(*found) for found in kthena.unserved(facts.settings, facts.kthena, facts.now))


def not_scaled(facts: Facts) -> Iterator[Hit]:
    """A policy that was never reconciled keeps replicas where they are, and nothing else shows it."""
    if "Kthena's objects" not in facts.blind:
        yield from (Hit(*found) for found in kthena.unscaled(facts.settings, facts.kthena, facts.now))


CATALOGUE: Final = (
    Diagnosis(
        id="kthena-not-served", title="Kthena does not serve a model", severity="error",
        cause="the ModelServing's engines are not available",
        fix="where its controller has said nothing of it, see that controller's pods and log; else see the pods that the message names",
        look="kubectl -n NS describe modelserving; kubectl -n kthena-system get pods",
        source="volcano-sh/kthena, ModelServing conditions", detect=not_served,
    ),
    Diagnosis(
        id="kthena-not-scaled", title="Kthena does not scale a model", severity="error",
        cause="the scaler is not reconciled, so replicas stay where they are",
        fix="read the log of Kthena's controller for this policy; check that it reaches the engines' port 8000 and that "
        "kthena.release is the release of the cluster",
        look="kubectl -n NS describe autoscalingpolicy", source="volcano-sh/kthena, AutoscalingPolicy conditions",
        detect=not_scaled,
    ),
)  # fmt: skip
