"""The report: what was declared, what was shown, with figures; one JSON with a versioned schema."""

from datetime import datetime
from typing import Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from smoke.cost import RunCost
from smoke.redact import REDACTOR
from smoke.warm import WarmWeek

ProbeClass = Literal["safe", "paid", "disruptive"]
Verdict = Literal["pass", "fail", "skip"]


class ProbeResult(BaseModel):
    """One probe's line: a figure in `unit` against `threshold`; cause and fix where it did not pass."""

    model_config = ConfigDict(frozen=True)

    name: str
    kind: ProbeClass = Field(validation_alias=AliasChoices("kind", "class"), serialization_alias="class")
    verdict: Verdict
    figure: float | None = None
    unit: str | None = None
    threshold: float | None = None
    cause: str | None = None
    fix: str | None = None


class Report(BaseModel):
    """One run over one stack. Schema 1: fields may be added, none is removed or changes its meaning."""

    model_config = ConfigDict(frozen=True)

    schema_version: Literal[1] = Field(
        default=1, validation_alias=AliasChoices("schema_version", "schema"), serialization_alias="schema"
    )
    verdict: Literal["pass", "fail"]
    probes: tuple[ProbeResult, ...]
    stack: str
    environment: str
    release: str
    """Digest of the stack configuration that was tested; `promote` compares it."""
    content: str
    """Digest of what is promoted from stack to stack: images, models, engines (rules of smoke/promote.py)."""
    commit: str | None = None
    """Commit of the checkout that was deployed, for the rollback command."""
    started: datetime
    seconds: float
    versions: dict[str, str] = {}
    """What ran: part → version or reference."""
    evidence: dict[str, Any] = {}
    """Measured series by probe name, for plots: figures only, no prompt, no answer, no key."""
    cost: RunCost | None = None
    """Yuan an hour, and a million tokens within the objective; absent from reports of earlier versions."""
    warm_pools: tuple[WarmWeek, ...] = ()
    """Activations of each warm pool since its last weekly review, and what that review did."""

    def to_json(self) -> str:
        """The report as JSON text, keys masked wherever one could have slipped into a message."""
        return REDACTOR.text(self.model_dump_json(by_alias=True, indent=2))

    def failures(self) -> list[str]:
        """One line a failed probe: name, cause, fix."""
        return [REDACTOR.text(f"{p.name}: {p.cause}; {p.fix}") for p in self.probes if p.verdict == "fail"]


def verdict_of(probes: tuple[ProbeResult, ...]) -> Literal["pass", "fail"]:
    """Pass needs at least one probe that passed and none that failed: an empty run proves nothing."""
    verdicts = {probe.verdict for probe in probes}
    return "pass" if "pass" in verdicts and "fail" not in verdicts else "fail"
