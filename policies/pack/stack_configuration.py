"""The stack's configuration, which the engine tells the pack by a call that pulumi-policy 1.21.0 answers and forgets.

Kept where that SDK looks for it before each request. Secret values stay out.
"""

import json
import os
from typing import Any

from pulumi_policy import policy

_ANSWER = policy._PolicyAnalyzerServicer.ConfigureStack


def remember() -> None:
    """From now on `pulumi.Config` works in policies."""
    policy._PolicyAnalyzerServicer.ConfigureStack = _configure


def _configure(servicer: Any, request: Any, context: Any) -> Any:
    secret = set(request.config_secret_keys)
    config = {key: value for key, value in request.config.items() if key not in secret}
    os.environ |= {
        "PULUMI_CONFIG": json.dumps(config),
        "PULUMI_PROJECT": request.project,
        "PULUMI_STACK": request.stack,
        "PULUMI_DRY_RUN": str(request.dry_run).lower(),
    }
    return _ANSWER(servicer, request, context)
