"""Envoy's configuration as pure functions of the settings: no Pulumi, no I/O but the Lua sources beside them."""
