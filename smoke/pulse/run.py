"""Runs a pulse on one model of a live stack."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from settings.settings import Settings
from smoke.cost import cost_of, usage_of
from smoke.errors import PermanentError
from smoke.load import Load, Request, Sample
from smoke.page.plots import Line, lines
from smoke.page.render import page
from smoke.probe import LiveStack
from smoke.pulse.judge import Stages, Targets, criteria, times
from smoke.pulse.result import PulseResult, Timeline
from smoke.pulse.watch import Moment, Watch


def stages_of(live: LiveStack) -> Stages:
    """The configured pulse."""
    pulse = live.settings.smoke.pulse
    before, ramp, top, after = pulse.stage_seconds
    return Stages(low=pulse.low_users, high=pulse.high_users, before=before, ramp=ramp, top=top, after=after)


def targets_of(live: LiveStack) -> Targets:
    """What the engines' scaler aims at."""
    engines = live.settings.autoscaling.engines
    return Targets(queue=engines.queue_depth, ttft=engines.ttft_seconds)


async def pulse(live: LiveStack, model: str, rate: float | None = None) -> PulseResult:
    """Load in stages while the stack is watched; with `rate`, requests a second at the top instead of users (open loop).

    Raises PermanentError where the cluster can't be watched.
    """
    if live.engines is None:
        raise PermanentError("a pulse needs the cluster to see queues and replicas", "give smoke a kubeconfig")
    stages, targets, started = stages_of(live), targets_of(live), datetime.now(UTC)
    config = live.settings.smoke.pulse
    load = Load(live.gateway, Request(model=model, prompt_words=config.prompt_words, max_tokens=config.max_tokens))
    watch = Watch(live.engines, model, lambda: load.now)
    watching = asyncio.create_task(watch.run())
    try:
        if rate is None:
            await load.closed(stages.users, stages.seconds)
        else:
            await load.arriving(lambda at: rate * stages.users(at) / stages.high, stages.seconds)
        watch.moments.append(await watch.look())
    finally:
        watching.cancel()
    answered = [sample for sample in load.samples if sample.outcome == "ok"]
    good = [sample for sample in answered if (sample.first_token or 0) <= targets.ttft]
    cost = cost_of(live.settings, load.samples, stages.seconds)
    judged = criteria(stages, targets, load.samples, watch.moments)
    return PulseResult(
        stack=live.name,
        model=model,
        started=started,
        verdict="fail" if any(one.verdict == "fail" for one in judged) else "pass",
        times=times(stages, targets, load.samples, watch.moments),
        criteria=judged,
        requests=len(load.samples),
        lost=sum(sample.outcome == "lost" for sample in load.samples),
        broken=sum(sample.outcome == "broken" for sample in load.samples),
        tokens_per_second=round(_tokens(live.settings, answered) / stages.seconds, 2),
        cost_per_million_tokens=cost.per_million(_tokens(live.settings, good)),
        channel_spend=round(cost.channel, 4),
        channel_tokens_without_price=cost.unpriced_tokens,
        timeline=timeline_of(stages, load.samples, watch.moments),
    )


def pulse_page(result: PulseResult, targets: Targets) -> str:
    """The pulse as a page: times, criteria, and the plots of its timeline."""
    line = result.timeline
    plots = [
        ("Users", lines("users", [Line("users", line.users, "cold")])),
        (
            "Requests waiting, on the fullest engine",
            lines("queue", [Line("queue", line.queue, "warm")], limit=targets.queue),
        ),
        ("First token, seconds", lines("ttft", [Line("TTFT", line.ttft, "warm")], limit=targets.ttft)),
        ("Pods", lines("pods", [Line("serving", line.replicas, "good"), Line("warm", line.warm, "third")])),
        ("KV space in use", lines("kv", [Line("share", line.kv_usage, "warm")])),
    ]
    shown = {"metric over target": result.times.metric_over_target, "HPA decision": result.times.hpa_decision}
    shown["new instance takes traffic"] = result.times.new_instance_serving
    rows = [
        {
            "name": one.name,
            "verdict": one.verdict,
            "proves": one.unit,
            "figure": "" if one.figure is None else f"{one.figure:g}",
            "limit": f"limit {one.threshold:g}",
            "cause": one.cause,
            "fix": one.fix,
        }
        for one in result.criteria
    ]
    facts = [(name, "did not happen" if value is None else f"{value:g} s") for name, value in shown.items()]
    counts = [("requests", str(result.requests)), ("lost", str(result.lost)), ("broken", str(result.broken))]
    price = result.cost_per_million_tokens
    counts.append(("yuan a million good tokens", "no good token" if price is None else f"{price:g}"))
    counts.append(("yuan at the channel", f"{result.channel_spend:g}"))
    if result.channel_tokens_without_price:
        counts.append(("channel tokens without a price, not in the cost", str(result.channel_tokens_without_price)))
    return page(
        stack=result.stack,
        verdict=result.verdict,
        summary=f"Pulse on {result.model}, {result.started:%Y-%m-%d %H:%M} UTC, {result.tokens_per_second:g} tokens a second",
        rows=rows,
        plots=plots,
        sections=[("After the ramp began", facts), ("Load", counts)],
    )


def _tokens(settings: Settings, samples: Sequence[Sample]) -> int:
    return sum(usage_of(settings, sample).completion_tokens for sample in samples)


def timeline_of(stages: Stages, samples: Sequence[Sample], moments: Sequence[Moment]) -> Timeline:
    """The series of a pulse, from its start."""

    def series(value: Callable[[Moment], float]) -> list[tuple[float, float]]:
        return [(round(moment.at, 1), round(value(moment), 3)) for moment in moments]

    return Timeline(
        users=[(float(at), float(stages.users(at))) for at in range(int(stages.seconds) + 1)],
        queue=series(lambda moment: moment.queue),
        replicas=series(lambda moment: moment.replicas),
        warm=series(lambda moment: moment.warm),
        kv_usage=series(lambda moment: moment.kv_usage),
        ttft=sorted((round(s.began, 1), round(s.first_token, 3)) for s in samples if s.first_token is not None),
    )
