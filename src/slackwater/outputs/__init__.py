"""OUTPUTS: one evaluated batch, and its delivery to every sink."""
