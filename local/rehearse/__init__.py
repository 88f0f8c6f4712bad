"""Try a production stack without production: its manifests as files, and a rehearsal on simulated nodes with the real scheduler."""
