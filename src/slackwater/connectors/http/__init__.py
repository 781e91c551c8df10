"""HTTP as a sink and as a lookup store."""
