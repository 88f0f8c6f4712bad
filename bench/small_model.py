"""dev with a small second model whose pods hold two requests each: elasticity at the size of one machine, on real engines."""

from typing import Any

from bench.changed_dev import Groups
from rules import names

MODEL = "dev-tiny"
PER_POD = 2
"""Requests that a pod computes at once; more wait."""
LOW_USERS, HIGH_USERS = 2, 12


def small_model(config: Groups) -> None:
    """One engine of the small model beside dev's, without scalers."""
    first = config["moonstack:models"][0]
    config["moonstack:models"].append(
        {
            "name": MODEL,
            "shape": "aggregated",
            "connector": "none",
            "weights": first["weights"] | {"location": MODEL, "size": "10Mi"},
            "engine": first["engine"] | {"blockSize": 32, "maxModelLen": 1024, "maxNumSeqs": PER_POD},
            "serve": {
                "pool": "ascend",
                "replicas": 1,
                "chips": 1,
                "cpu": "100m",
                "memory": "2Gi",
                "memoryLimit": "3Gi",
            },
            "router": {"replicas": 1, "policy": "round_robin"},
            "longestRequestSeconds": 30,
        }
    )
    more_chips(config)
    config["moonstack:smokeSkip"] = True


def more_chips(config: Groups) -> None:
    """Chips for what dev has no room for; the local node's are made up."""
    config["moonstack:nodePools"] = [{**pool, "chipsPerNode": 40} for pool in config["moonstack:nodePools"]]


def scaled(config: Groups) -> None:
    """The small model with one to two engines by HPA, and one warm pod."""
    small_model(config)
    config["moonstack:autoscaling"] = {"gateway": {"enabled": False}, "engines": _scaling()}
    config["moonstack:warmPool"] = {
        "enabled": True,
        "roles": [names.SERVE],
        "replicas": 1,
        "minReplicas": 1,
        "maxReplicas": 1,
        "calmSeconds": 8,
    }
    pulse = {"lowUsers": LOW_USERS, "highUsers": HIGH_USERS, "stageSeconds": [10, 2, 50, 30], "promptWords": 20}
    config["moonstack:smoke"] = config["moonstack:smoke"] | {"pulse": pulse}


def _scaling() -> dict[str, Any]:
    """Quick to scale, as a pulse lasts two minutes here; dev's own two roles keep their numbers."""
    return {
        "enabled": True,
        "queueDepth": 2,
        "ttftWindowSeconds": 10,
        "scaleUpWindowSeconds": 0,
        "scaleDownWindowSeconds": 60,
        "scaleDownPeriodSeconds": 5,
        "roles": {
            names.PREFILL: {"minReplicas": 2, "maxReplicas": 2},
            names.DECODE: {"minReplicas": 1, "maxReplicas": 1},
            names.SERVE: {"minReplicas": 1, "maxReplicas": 2},
        },
        "prediction": {"enabled": False, "requestsPerPod": PER_POD},
    }
