"""Redis as a sink and as a lookup store."""
