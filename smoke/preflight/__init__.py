"""What a cluster lacks for a stack, found before anything is applied; it only reads."""
