"""A key's quota is in force: one request too many is answered with 429."""

import asyncio

from settings.keys import KeySettings
from settings.settings import Settings
from smoke.client import MODELS
from smoke.keys import read_key
from smoke.probe import LiveStack, Outcome, Probe, failed, passed
from smoke.probes.refusal import refused


def probes(settings: Settings) -> list[Probe]:
    """One for the smallest quota among the smoke keys; none when no smoke key has one."""
    limited = [key for key in settings.keys.keys if key.purpose == "smoke" and key.qps]
    return [_probe(min(limited, key=lambda key: key.qps or 0))] if limited else []


def _probe(key: KeySettings) -> Probe:
    quota = key.qps or 1

    async def check(stack: LiveStack) -> Outcome:
        cluster = stack.engines.cluster if stack.engines else None
        gateway = stack.gateway.with_key(await read_key(stack.settings, key.id, cluster))
        pods = stack.settings.autoscaling.gateway.max_replicas if stack.settings.autoscaling.gateway.enabled else None
        count = 2 * quota * (pods or stack.settings.gateway.replicas) + 3
        answers = await asyncio.gather(*(gateway.send("GET", MODELS) for _ in range(count)))
        limited = [answer for answer in answers if answer.status == 429]
        if not limited:
            return failed(
                f"{count} requests at once with key {key.id}, which may send {quota} a second, were all let through",
                "the gateway's limits per key are not in force: run pulumi up",
                0,
                "requests limited",
                1,
            )
        verdict = refused(limited[0], 429, "a request over the quota", "run pulumi up")
        return verdict if verdict.verdict == "fail" else passed(len(limited), "requests limited", 1)

    return Probe(name="429", proves="a key's quota is in force", check=check)
