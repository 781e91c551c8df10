"""The simulator: the in-memory engine on made-up events, to see what settings do before there are any real ones."""
