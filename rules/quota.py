"""Rates against the external channel's contract."""

from rules.problem import Problem


def channel_quota(max_pods: int, qps_per_pod: int, quota_qps: int) -> list[Problem]:
    """Per-pod limits scale with pods: their product must stay within the channel's quota (A8).

    The story: 128 pods × 120 = 15,360; the default 256 × 120 needs 30,720.
    """
    product = max_pods * qps_per_pod
    if product <= quota_qps:
        return []
    return [
        Problem(
            "channel.quotaQps",
            quota_qps,
            f"gateway maximum {max_pods} × qpsPerPod {qps_per_pod} = {product:,} requests a second exceed it",
            f"raise the channel's quota to {product:,}, or lower autoscaling.gateway.maxReplicas or channel.ratelimit.qpsPerPod",
        )
    ]


def weights_sum_to_one(weights: list[float]) -> list[Problem]:
    """Weights of the channel's models must sum to 1 (A4), within a thousandth."""
    total = sum(weights)
    if abs(total - 1) <= 1e-3:
        return []
    return [Problem("channelModels.models", round(total, 4), "the weights must sum to 1", "correct the weights")]
