"""The channel for tests: an OpenAI-compatible server with keys, quotas, latency and faults that can be set."""
