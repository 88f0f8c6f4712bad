"""The component tests' fixtures, for components of the serving domain."""

from tests.unit.components.conftest import declare_stack, dev, dev_values, runtime

__all__ = ["declare_stack", "dev", "dev_values", "runtime"]
