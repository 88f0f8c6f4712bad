"""Pure builders of scaling objects: HPAs, KEDA ScaledObjects, the controller; no Pulumi import."""
