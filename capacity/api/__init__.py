"""The custom metrics API that the HPA reads."""
