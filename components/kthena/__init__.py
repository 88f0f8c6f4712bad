"""Backend kthena: typed models of Kthena's custom resources, pure builders from the settings, and the component."""
