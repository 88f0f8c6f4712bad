"""What the deployment's gate calls: run the safe probes, and say what to do when they fail."""

from contextlib import suppress
from dataclasses import dataclass

from settings.settings import Settings
from smoke import archive, redact, suite
from smoke.errors import SmokeError
from smoke.probe import LiveStack
from smoke.report import Report
from smoke.sets import leave_old_sets
from smoke.settle import find_workers, settle


@dataclass(frozen=True, slots=True)
class Proof:
    """Whether the release was proven, and the text that says so or why not."""

    passed: bool
    text: str


async def prove(settings: Settings, stack: str, gateway_config: str, release: str) -> Proof:
    """Run the safe probes on what was just deployed, once the gateways have taken it up."""
    redact.install()
    try:
        async with suite.live_stack(settings, stack) as live:
            await settle(settings, live.gateway, gateway_config)
            if live.engines:
                await leave_old_sets(settings, live.engines.cluster)
            await find_workers(settings, live.gateway)
            report = await suite.examine(live, release=release)
            green = None if report.verdict == "pass" else await _green(live)
    except SmokeError as error:
        return Proof(False, f"smoke could not begin on {stack}: {error}")
    if report.verdict == "pass":
        shown = sum(probe.verdict == "pass" for probe in report.probes)
        return Proof(True, f"smoke passed: {shown} probes in {report.seconds:g} s")
    return Proof(False, failure(report, green))


async def _green(live: LiveStack) -> Report | None:
    """The stack's last green report, or None where there is none or it can't be read."""
    with suppress(SmokeError):
        return await archive.latest_green(live.engines.cluster) if live.engines else None


def failure(report: Report, green: Report | None) -> str:
    """The gate's message: what failed, what is serving now, how to go back, how to try again."""
    stack = report.stack
    lines = [f"  {line}" for line in report.failures()]
    back = (
        f"git checkout {green.commit} && pulumi up -s {stack}"
        if green and green.commit
        else f"git checkout <last good commit> && pulumi up -s {stack}   (pulumi stack history -s {stack} lists them)"
    )
    return "\n".join(
        [
            f"smoke failed on {stack} after {report.seconds:g} s; the new version keeps serving:",
            *lines,
            f"roll back:  {back}",
            f"try again:  pulumi up -s {stack}   (runs the probes again, also with nothing changed)",
        ]
    )
