"""Policy checks: pure modules, one concern each."""
