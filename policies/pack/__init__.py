"""The policy pack: the only part that needs pulumi-policy, which lives in the pack's own environment."""
