"""What runs in the cluster beside the engines."""
