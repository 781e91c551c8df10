"""OUTPUTS: an evaluated batch and its delivery to every sink."""
