"""An API server and engines in memory, for measurements and tests that need hundreds of pods."""
