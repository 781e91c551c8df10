"""The simulator: the in-memory engine on generated events, to see what settings do before there are real ones."""
