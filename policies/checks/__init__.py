"""The rules, one concern a module; `policies.catalogue` lists them all."""
